/*
 * The sampler, propagator and span processors of an SDK may be code of the app, and the API passes
 * on their errors. Such an error must not fail a call: the call then has no span.
 */

/** @returns the result of `step`; `undefined` if it throws. */
export function harmless<R>(step: () => R): R | undefined {
  try {
    return step();
  } catch {
    return undefined;
  }
}

/** Runs `body` inside `wrap`. If `wrap` throws before `body` has begun, runs `body` without it. */
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
