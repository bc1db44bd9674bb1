/** The CPU time in ms that a reconnecting client costs another worker: about two handshakes. */
const MS_EACH = 2;

const STEP_MS = 10;

/**
 * Tells clients to leave, a few at a time so that other workers are not overloaded, and all of them
 * within `withinMs`. Resolves when all clients have left.
 *
 * @param present returns the current clients. Further clients may come during the drain.
 */
export async function sendAway<T>(
  present: () => readonly T[],
  leave: (one: T) => void,
  withinMs: number,
): Promise<void> {
  const told = new Set<T>();
  const until = performance.now() + withinMs;
  for (let all = present(); all.length > 0; all = present()) {
    const waiting = all.filter((each) => !told.has(each));
    const steps = Math.max(1, (until - performance.now()) / STEP_MS);
    const now = Math.max(STEP_MS / MS_EACH, Math.ceil(waiting.length / steps));
    for (const one of waiting.slice(0, now)) {
      told.add(one);
      leave(one);
    }
    await new Promise((resolve) => setTimeout(resolve, STEP_MS));
  }
}
