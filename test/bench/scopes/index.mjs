import { balance } from './balance.mjs';
import { distributed } from './distributed.mjs';
import { hub } from './hub.mjs';
import { offload } from './offload.mjs';
import { offloadCost } from './offload-cost.mjs';
import { queuedCall } from './queued-call.mjs';
import { reload } from './reload.mjs';
import { requestPath } from './request-path.mjs';
import { scrape } from './scrape.mjs';

/** What is measured of this package alone, against limits of its own. */
export const OWN_SCOPES = {
  'request-path': requestPath,
  balance,
  reload,
  offload,
  'offload-cost': offloadCost,
  scrape,
  distributed,
  'queued-call': queuedCall,
  hub,
};
