import { LEAVE_SIGNAL } from '../../contract/ipc/index.js';
import { takeOverNestSignals } from './nest-signals.js';

/** Sent to the whole process group, by a terminal or a shell: the primary decides what follows. */
const SIGNALS_OF_THE_PRIMARY = ['SIGINT', 'SIGHUP', 'SIGTTIN', 'SIGTTOU'] as const;

/**
 * Answers the signals of a worker.
 *
 * @param leave this worker alone is asked to go.
 * @param tookOver Nest had listened to signals, and does no more.
 */
export function answerSignals(leave: (signal: NodeJS.Signals) => void, tookOver: () => void): void {
  for (const signal of SIGNALS_OF_THE_PRIMARY) process.on(signal, () => {});
  process.on(LEAVE_SIGNAL, leave);
  takeOverNestSignals([LEAVE_SIGNAL, ...SIGNALS_OF_THE_PRIMARY], leave, tookOver);
}
