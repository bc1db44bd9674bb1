/**
 * Calls `run` once for all calls that are made during that run.
 *
 * @param situation a call in a situation other than the current run's situation starts a new run.
 */
export function shareInFlight<T>(
  run: () => Promise<T>,
  situation: () => unknown = () => undefined,
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
