import type { Told } from '../control-client.js';

/** A primary sends a sample a second: one that is blocked or stopped is noticed within 2 s. */
const SILENT_MS = 1_800;

export const SILENCE = 'the primary does not answer: it is blocked or stopped';

/** Calls `silent` where nothing comes for too long, and once only until something comes. */
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
    // The process was killed in the middle of an answer.
    if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error;
  } finally {
    clearTimeout(timer);
  }
}
