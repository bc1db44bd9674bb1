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

/**
 * The faults of a soak, without end: in each ten minutes two kills, five minutes apart, and a reload
 * between them.
 */
export function* timetable({ kill, reload }, now = Date.now) {
  const begin = now();
  const parameters = { share: 0, workers: 1 };
  for (let tens = 0; ; tens++) {
    for (const { fault, minute } of [
      { fault: kill, minute: 2 },
      { fault: reload, minute: 4 },
      { fault: kill, minute: 7 },
    ]) {
      const at = begin + (tens * 10 + minute) * 60_000;
      yield { fault, parameters, pauseMs: Math.max(0, at - now()) };
    }
  }
}
