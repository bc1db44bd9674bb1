/*
 * Sampler, propagator and span processors of an SDK may be the app's own, and what they throw comes
 * out of the API. A call must not fail by it: it goes without its span.
 */

/** @returns `undefined` where it throws. */
export function harmless<R>(step: () => R): R | undefined {
  try {
    return step();
  } catch {
    return undefined;
  }
}

/** Runs `body` inside of `wrap`, or without it where that throws before it has begun. */
export function harmlesslyIn<R>(wrap: (body: () => R) => R, body: () => R): R {
  let begun = false;
  try {
    return wrap(() => {
      begun = true;
      return body();
    });
  } catch (error) {
    if (begun) throw error;
    return body();
  }
}
