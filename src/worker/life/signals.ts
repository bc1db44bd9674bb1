import { callSites } from '../../contract/errors/call-sites.js';
import { LEAVE_SIGNAL } from '../../contract/ipc/index.js';

/** Sent to the whole process group, by a terminal or a shell: the primary decides what follows. */
const SIGNALS_OF_THE_PRIMARY = ['SIGINT', 'SIGHUP', 'SIGTTIN', 'SIGTTOU'] as const;

/** Nest's method that listens to signals; of every app, context and microservice, in Nest 11 and 12. */
const LISTENS = 'listenToShutdownSignals';

/** Frames between that method and `process.on()`. */
const MAX_FRAMES = 12;

/** Raised by a fault of the process itself. After one no JavaScript can be relied on. */
const FAULTS = ['SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGSEGV', 'SIGTRAP'];

/** For the operator, once. */
export const HOOKS_TAKEN_OVER =
  'enableShutdownHooks() is not needed here and was taken back: Nest would close the app under requests in flight; the hooks run once, after the drain, with the name of the signal; leave the call out, and close what else you created by NestFactory in a hook of the app';

/**
 * Answers the signals of a worker.
 *
 * @param leave this worker alone is asked to go.
 * @param tookOver Nest had listened to signals, and no longer does.
 */
export function answerSignals(leave: (signal: NodeJS.Signals) => void, tookOver: () => void): void {
  for (const signal of SIGNALS_OF_THE_PRIMARY) process.on(signal, () => {});
  process.on(LEAVE_SIGNAL, leave);
  takeOverNestSignals([LEAVE_SIGNAL, ...SIGNALS_OF_THE_PRIMARY], leave, tookOver);
}

/**
 * Takes Nest's listeners of `enableShutdownHooks()` off the process, whenever they come. A terminal
 * or a supervisor sends its signal to the whole process group, and Nest would close what requests in
 * flight need.
 *
 * Contexts other than the app lose theirs too, and nobody closes them: a listener of Nest does not
 * tell which context it is of, and once called it ends the process by the signal.
 *
 * @param owned signals that somebody else answers.
 * @param leave is called when another signal comes for which Nest had listened.
 * @param told is called each time.
 * @returns undoes it: listens to nothing any more.
 */
export function takeOverNestSignals(
  owned: readonly string[],
  leave: (signal: NodeJS.Signals) => void,
  told: () => void,
): () => void {
  const answered = new Set<string>([...owned, ...FAULTS]);
  const ours = new Set<string>();
  const onNewListener = (name: string | symbol, listener: () => void): void => {
    if (typeof name !== 'string' || !name.startsWith('SIG') || !isCalledBy(LISTENS)) return;
    // It is not in yet. Signals are delivered by the event loop, and so after this.
    queueMicrotask(() => {
      process.off(name, listener);
      told();
      if (answered.has(name)) return;
      answered.add(name);
      ours.add(name);
      process.on(name as NodeJS.Signals, leave);
    });
  };
  process.on('newListener', onNewListener);
  return () => {
    process.off('newListener', onNewListener);
    for (const name of ours) process.off(name, leave);
  };
}

function isCalledBy(name: string): boolean {
  return callSites(MAX_FRAMES, isCalledBy).some((site) => site.getFunctionName() === name);
}
