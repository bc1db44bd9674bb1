import { constants, setPriority } from 'node:os';
import { expect, it } from 'vitest';
import { describeFailure, simulate } from './simulation.js';

/** A commit has fewer than CI: most faults are found in the first hundred. */
const LIVES = process.env['CI'] ? 10_000 : 3_000;
const SHELL_LIVES = LIVES / 5;

/** What happens in a life, on the average, besides heartbeats. */
const EVENTFUL = 100;

it.each([
  { lives: LIVES, primary: 'the core alone', shell: false },
  { lives: SHELL_LIVES, primary: 'the real supervisor around it', shell: true },
])(
  'holds what it promises, in $lives lives of a cluster with $primary',
  { timeout: 600_000 },
  ({ lives, shell }) => {
    // Tests that run beside it have deadlines.
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
    const { events, eventful, failure } = simulate({ seed: 1, runs: lives, shell });
    if (failure !== undefined) expect.fail(describeFailure(failure));
    expect(events).toBeGreaterThan(lives * EVENTFUL);
    expect(eventful).toBeGreaterThan(lives * EVENTFUL);
  },
);
