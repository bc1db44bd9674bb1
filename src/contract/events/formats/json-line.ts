import type { WorkerIdentity } from '../../snapshot/index.js';
import { cleanJson } from './clean-json.js';
import type { LineFormat } from './line-format.interface.js';

/** One JSON object for each line, with every field of the event. */
export const JSON_FORMAT: LineFormat = {
  streams: { info: 'out', warn: 'err', error: 'err' },
  line({ name, event, level, text }) {
    const { worker, ...rest } = event as { worker?: WorkerIdentity };
    return cleanJson({
      time: new Date().toISOString(),
      level,
      event: name,
      // Comes before `message`, because a warning has a field of that name, without the worker's
      // identity and the error.
      ...rest,
      message: text,
      ...(worker && { worker: worker.slot, gen: worker.generation, pid: worker.pid }),
    });
  },
};
