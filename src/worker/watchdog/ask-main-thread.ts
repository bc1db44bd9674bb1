import type { BlockedRequest, BlockReport } from '../../contract/ipc/block-report.js';
import type { Suspects } from '../quarantine/request-watch.js';
import type { NotedRequestsMemory } from './noted-requests.js';

/** Maximum wait for the main thread's answer. The main thread cannot answer while it runs native code. */
const ANSWER_TIMEOUT_MS = 500;

export type Description = Pick<BlockReport, 'requests' | 'frames'> &
  Partial<Suspects> & { readonly answered: boolean };

/**
 * Asks the main thread what it is doing. The inspector interrupts any JavaScript there, even an
 * endless loop or a regular expression, so the answer has the stack of the block.
 *
 * @param question the expression whose value is a description as JSON.
 * @param noted the requests that are the answer if the main thread gives none.
 */
export function askMainThread(
  question: string,
  noted: NotedRequestsMemory,
  tell: (found: Description) => void,
): void {
  let told = false;
  const answer = (found: Description): void => {
    if (told) return;
    told = true;
    tell(found);
  };
  const answerAlone = () => answer({ requests: readNoted(noted), frames: [], answered: false });
  setTimeout(answerAlone, ANSWER_TIMEOUT_MS);
  evaluateInMainThread(question, (value) => {
    if (typeof value === 'string') answer({ ...JSON.parse(value), answered: true });
    else answerAlone();
  });
}

/** Evaluates an expression in the main thread, by an interrupt. Its value is `undefined` if that fails. */
export function evaluateInMainThread(expression: string, done: (value: unknown) => void): void {
  try {
    // Some builds of Node have no inspector.
    const session = new (process.getBuiltinModule('node:inspector').Session)();
    session.connectToMainThread();
    session.post('Runtime.evaluate', { expression }, (error, reply) => {
      session.disconnect();
      done(error === null ? reply.result.value : undefined);
    });
  } catch {
    done(undefined);
  }
}

/** Reads the requests in flight from the shared memory, oldest first. */
function readNoted(noted: NotedRequestsMemory): BlockedRequest[] {
  const { lengths, startedAt } = noted;
  const text = Buffer.from(noted.text);
  const now = performance.timeOrigin + performance.now();
  const requests = Array.from(lengths, (length, place) => {
    const begin = (place * text.length) / lengths.length;
    const [method = '', url = ''] = text.toString('latin1', begin, begin + length).split(' ');
    // Leaves out the query, which may hold secrets.
    return { method, path: url.split('?')[0]!, forMs: Math.max(0, now - startedAt[place]!) };
  });
  return requests.filter((_, place) => lengths[place]! > 0).sort((a, b) => b.forMs - a.forMs);
}
