import type { Told } from '../control-client.js';

/** A primary sends a sample every second. If nothing came for this long, in ms, the primary counts as blocked. */
const SILENT_MS = 1_800;

export const SILENCE = 'the primary does not answer: it is blocked or stopped';

export function warnOfSilence(): void {
  process.stderr.write(`${SILENCE}\n`);
}

/** Passes the messages on. Calls `silent` whenever no message has come for `SILENT_MS`. */
export async function* noticingSilence(
  source: AsyncIterable<Told>,
  silent: () => void,
): AsyncGenerator<Told> {
  const timer = setTimeout(silent, SILENT_MS);
  try {
    for await (const told of source) {
      timer.refresh();
      yield told;
    }
  } catch (error) {
    // ECONNRESET: the primary was killed in the middle of its answer.
    if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error;
  } finally {
    clearTimeout(timer);
  }
}
