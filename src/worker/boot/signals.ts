import { callSites } from '../../contract/errors/call-sites.js';
import { LEAVE_SIGNAL } from '../../contract/messages.js';

/** Signals that a terminal or shell sends to the whole process group. Workers leave them to the primary. */
const SIGNALS_OF_THE_PRIMARY = ['SIGINT', 'SIGHUP', 'SIGTTIN', 'SIGTTOU'] as const;

/** Nest's method that listens to signals, in apps, contexts and microservices of Nest 11 and 12. */
const LISTENS = 'listenToShutdownSignals';

/** The maximum number of frames between Nest's method and `process.on()` that are searched. */
const MAX_FRAMES = 12;

/** The warning when Nest's signal listeners were removed. Logged once. */
export const HOOKS_TAKEN_OVER =
  "enableShutdownHooks() is not needed, and its signal listeners were removed: Nest would close the app while requests are in flight; the hooks run once, after the drain, with the signal's name. Remove the call, and close other Nest contexts in a shutdown hook of the app";

/** @param tookOver is called when Nest's listeners were removed. */
export function answerSignals(leave: (signal: NodeJS.Signals) => void, tookOver: () => void): void {
  for (const signal of SIGNALS_OF_THE_PRIMARY) process.on(signal, () => {});
  process.on(LEAVE_SIGNAL, leave);
  removeNestListeners(tookOver);
}

/**
 * Removes the listeners of Nest's `enableShutdownHooks()` from the process as soon as they are
 * added. A terminal or a supervisor sends its signal to the whole process group. At that signal,
 * Nest would close resources that requests in flight need.
 *
 * Nest contexts other than the app lose their listeners too, and are not closed. This cannot be
 * avoided: a listener does not show its context, and if called, it ends the process by the signal.
 *
 * @returns a function that ends this.
 */
export function removeNestListeners(tookOver: () => void): () => void {
  const onNewListener = (name: string | symbol, listener: () => void): void => {
    if (typeof name !== 'string' || !name.startsWith('SIG')) return;
    const sites = callSites(MAX_FRAMES, onNewListener);
    if (!sites.some((site) => site.getFunctionName() === LISTENS)) return;
    // Node adds the listener only after this event, so a microtask removes it, before any signal comes.
    queueMicrotask(() => {
      process.off(name, listener);
      tookOver();
    });
  };
  process.on('newListener', onNewListener);
  return () => process.off('newListener', onNewListener);
}
