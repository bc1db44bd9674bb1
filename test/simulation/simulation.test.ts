import { constants, setPriority } from 'node:os';
import { expect, it } from 'vitest';
import { describeFailure, simulate } from './simulation.js';

const LIVES = 10_000;

/** What happens in a life, on the average, besides heartbeats. */
const EVENTFUL = 100;

it(`holds what it promises, in ${LIVES} lives of a cluster`, { timeout: 600_000 }, () => {
  // Tests that run beside it have deadlines.
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  const { events, eventful, failure } = simulate({ seed: 1, runs: LIVES });
  if (failure !== undefined) expect.fail(describeFailure(failure));
  expect(events).toBeGreaterThan(LIVES * EVENTFUL);
  expect(eventful).toBeGreaterThan(LIVES * EVENTFUL);
});
