import { compareBroadcasts } from './hub/broadcasts.mjs';
import { measureBytes, measureUnused } from './hub/memory.mjs';
import { compareOperations, OPERATION_PARTS } from './hub/operations.mjs';
import { compareThrottlers } from './hub/throttled.mjs';

/** Values of `--part`. */
export const HUB_PARTS = ['throttler', ...OPERATION_PARTS, 'socket.io', 'bytes', 'unused'];

const WINDOW_MS = 700;
/** wrk takes whole seconds. */
const HTTP_WINDOW_MS = 1_000;

/**
 * State shared by workers: the same work through the hub and through Redis, in the same processes,
 * in windows that take turns. CPU is the use by all processes, including Redis, above their idle
 * use. `primaryP99Ms` is the event loop delay of the primary, `witnessP99Ms` the delay of a process
 * that does nothing. Measures the memory of the hub too.
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
