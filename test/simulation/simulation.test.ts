import { expect, it } from 'vitest';
import { describeFailure, simulate } from './simulation.js';

const LIVES = 10_000;

/** What happens in a life, on the average, besides heartbeats. */
const EVENTFUL = 100;

it(`holds what it promises, in ${LIVES} lives of a cluster`, { timeout: 300_000 }, () => {
  const { events, eventful, failure } = simulate({ seed: 1, runs: LIVES });
  if (failure !== undefined) expect.fail(describeFailure(failure));
  expect(events).toBeGreaterThan(LIVES * EVENTFUL);
  expect(eventful).toBeGreaterThan(LIVES * EVENTFUL);
});
