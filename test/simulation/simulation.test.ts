import { constants, setPriority } from 'node:os';
import { expect, it } from 'vitest';
import { describeFailure, simulate } from './simulation.js';

/** A local run plays fewer lives than CI, because most faults are found in the first hundred. */
const LIVES = process.env['CI'] ? 10_000 : 1_000;
/** The shell around the core changes seldom, and a life with it takes longer. */
const SHELL_LIVES = process.env['CI'] ? 2_000 : 50;

/** The least number of events in a life, on average and without heartbeats. */
const EVENTFUL = 75;

it.each([
  { lives: LIVES, primary: 'the core alone', shell: false },
  { lives: SHELL_LIVES, primary: 'the real supervisor around it', shell: true },
])(
  'holds what it promises, in $lives lives of a cluster with $primary',
  { timeout: 600_000 },
  ({ lives, shell }) => {
    // Other tests that run at the same time have deadlines.
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
    const { events, eventful, failure } = simulate({ seed: 1, runs: lives, shell });
    if (failure !== undefined) expect.fail(describeFailure(failure));
    expect(events).toBeGreaterThan(lives * EVENTFUL);
    expect(eventful).toBeGreaterThan(lives * EVENTFUL);
  },
);
