/**
 * Shares one run among all calls that come while it lasts, so that many calls cost no more.
 *
 * @param situation a call in another situation than the current run's gets a run of its own.
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
