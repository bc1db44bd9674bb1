import { compareBroadcasts } from './hub/broadcasts.mjs';
import { measureBytes, measureUnused } from './hub/memory.mjs';
import { compareOperations, OPERATION_PARTS } from './hub/operations.mjs';
import { compareThrottlers } from './hub/throttled.mjs';

/** What `--part` chooses of. */
export const HUB_PARTS = ['throttler', ...OPERATION_PARTS, 'socket.io', 'bytes', 'unused'];

const WINDOW_MS = 700;
/** wrk takes whole seconds. */
const HTTP_WINDOW_MS = 1_000;

/**
 * What workers share: the same work by the hub and by a Redis beside it, in the same processes, in
 * windows in turn. CPU is that of all processes, Redis among them, over what they use when nobody asks;
 * `primaryP99Ms` how late the event loop of the primary was, `witnessP99Ms` that of a process that does
 * nothing. And the memory of the hub.
 */
export async function hub({ parts = HUB_PARTS, workers: [workers], ...settings }) {
  const options = { ...settings, workers, windowMs: WINDOW_MS };
  const rows = [];
  for (const part of parts) {
    if (part === 'throttler') {
      rows.push(...(await compareThrottlers({ ...options, windowMs: HTTP_WINDOW_MS })));
    } else if (part === 'socket.io') rows.push(...(await compareBroadcasts(options)));
    else if (part === 'bytes') rows.push(...(await measureBytes(options)));
    else if (part === 'unused') rows.push(...(await measureUnused(options)));
    else rows.push(...(await compareOperations({ ...options, part })));
  }
  return rows.map(rounded);
}

function rounded(row) {
  return Object.fromEntries(
    Object.entries(row).map(([key, value]) => [
      key,
      typeof value === 'number' ? Number(value.toPrecision(4)) : value,
    ]),
  );
}
