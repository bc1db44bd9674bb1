import { classOf } from '../app-view.js';
import type { Check } from '../finding.js';

/** The default storage of @nestjs/throttler. */
const IN_MEMORY = 'ThrottlerStorageService';

export const throttler: Check = {
  name: 'throttler',
  remedy:
    'give forRoot() the storage of @nestjs-cluster/shared/throttler, { throttlers: […], storage: new ClusterThrottlerStorage() }; or, beyond one machine, one in Redis',
  look: (app) =>
    app.providers
      .filter(({ instance }) => classOf(instance) === IN_MEMORY)
      .slice(0, 1)
      .map(({ module }) => ({
        where: app.describeModule(module),
        problem:
          'every worker counts requests for itself, so a client may send the limit to each of them',
      })),
};
