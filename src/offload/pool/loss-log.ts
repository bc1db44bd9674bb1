import { OnceAMinute } from '../../contract/errors/index.js';
import { reasonOf } from '../thread/problem.js';

/** Logs why threads were lost, at most once a minute for each cause and task. */
export class LossLog {
  readonly #log: OnceAMinute;

  constructor(say: (line: string) => void) {
    this.#log = new OnceAMinute(say);
  }

  lost(task: string, error: unknown): void {
    const reason = reasonOf(error);
    this.#log.say(`the thread of ${task} was lost: ${reason}`, `${task}: ${reason}`, task);
  }
}
