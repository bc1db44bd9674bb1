/*
 * The sampler, propagator and span processors of an OpenTelemetry SDK may be code of the app, and
 * OpenTelemetry's API lets their errors through. A call with such an error has no span, but runs.
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
