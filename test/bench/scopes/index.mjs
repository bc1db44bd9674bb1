import { balance } from './balance.mjs';
import { disconnects } from './disconnects.mjs';
import { distributed } from './distributed.mjs';
import { drift } from './drift.mjs';
import { hub } from './hub.mjs';
import { offload } from './offload.mjs';
import { offloadCost } from './offload-cost.mjs';
import { openLoop } from './open-loop.mjs';
import { overload } from './overload.mjs';
import { queuedCall } from './queued-call.mjs';
import { refill } from './refill.mjs';
import { reload } from './reload.mjs';
import { requestPath } from './request-path.mjs';
import { reusePort } from './reuse-port.mjs';
import { scrape } from './scrape.mjs';
import { strict } from './strict.mjs';

/** What is measured of this package alone, against limits of its own. */
export const OWN_SCOPES = {
  'request-path': requestPath,
  balance,
  refill,
  drift,
  'open-loop': openLoop,
  reload,
  'reuse-port': reusePort,
  strict,
  offload,
  overload,
  'offload-cost': offloadCost,
  disconnects,
  scrape,
  distributed,
  'queued-call': queuedCall,
  hub,
};
