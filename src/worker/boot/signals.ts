import { callSites } from '../../contract/errors/call-sites.js';
import { LEAVE_SIGNAL } from '../../contract/messages.js';

/** A terminal or shell sends these signals to the whole process group. Only the primary handles them. */
const SIGNALS_OF_THE_PRIMARY = ['SIGINT', 'SIGHUP', 'SIGTTIN', 'SIGTTOU'] as const;

/** The Nest 11 and 12 method that adds signal listeners. */
const LISTENS = 'listenToShutdownSignals';

/** The number of stack frames searched for Nest's method. */
const MAX_FRAMES = 12;

export const HOOKS_TAKEN_OVER =
  'the signal listeners of enableShutdownHooks() were removed, because they would close the app with requests in flight; remove the call (the shutdown hooks run without it, after the drain), and close other Nest contexts in a shutdown hook of the app';

/** @param onRemove is called when Nest's signal listeners have been removed. */
export function answerSignals(leave: (signal: NodeJS.Signals) => void, onRemove: () => void): void {
  for (const signal of SIGNALS_OF_THE_PRIMARY) process.on(signal, () => {});
  process.on(LEAVE_SIGNAL, leave);
  removeNestListeners(onRemove);
}

/**
 * Removes the signal listeners of Nest's `enableShutdownHooks()` as soon as Nest adds them. A
 * terminal or supervisor signals the whole process group. Nest would then close resources that
 * requests in flight need.
 *
 * Other Nest contexts in the process also lose their listeners, so a signal does not close them.
 * This cannot be avoided, because a listener does not reveal its context.
 *
 * @returns a function that stops the removal of new listeners.
 */
export function removeNestListeners(onRemove: () => void): () => void {
  const onNewListener = (name: string | symbol, listener: () => void): void => {
    if (typeof name !== 'string' || !name.startsWith('SIG')) return;
    const sites = callSites(MAX_FRAMES, onNewListener);
    if (!sites.some((site) => site.getFunctionName() === LISTENS)) return;
    // Node adds the listener only after this event. The microtask runs before any signal is handled.
    queueMicrotask(() => {
      process.off(name, listener);
      onRemove();
    });
  };
  process.on('newListener', onNewListener);
  return () => process.off('newListener', onNewListener);
}
