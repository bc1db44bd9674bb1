/**
 * One run for all who ask while it is under way: asking often costs no more.
 *
 * @param situation a call in a different situation than the current run's gets its own run.
 */
export function shareInFlight<T>(
  run: () => Promise<T>,
  situation: () => unknown,
): () => Promise<T> {
  let current: { readonly promise: Promise<T>; readonly situation: unknown } | undefined;
  return () => {
    const now = situation();
    if (current !== undefined && current.situation === now) return current.promise;
    const begun = { promise: run(), situation: now };
    current = begun;
    const end = (): void => {
      if (current === begun) current = undefined;
    };
    begun.promise.then(end, end);
    return begun.promise;
  };
}
