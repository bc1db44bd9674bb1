import { Random } from './random.mjs';

/**
 * What happens, without end: every kind of fault once, in an order of its own each time. The seed
 * and the kinds decide all of it; when it happens depends on how long recovery takes.
 */
export function* schedule(seed, faults, longestPauseMs) {
  const random = new Random(seed);
  for (;;) {
    for (const fault of random.shuffled(faults)) {
      const parameters = fault.parameters(random);
      yield { fault, parameters, pauseMs: random.between(100, longestPauseMs) };
    }
  }
}
