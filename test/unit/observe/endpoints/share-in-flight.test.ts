import { describe, expect, it } from 'vitest';
import { shareInFlight } from '../../../../src/observe/endpoints/mount-endpoint.js';
import { held } from '../../../support/held.js';

/** Runs that end when they are told to. */
function heldRuns(situation: () => unknown = () => true) {
  const runs: ReturnType<typeof held<string>>[] = [];
  const ask = shareInFlight(async () => {
    const run = held<string>();
    runs.push(run);
    return run.promise;
  }, situation);
  return { runs, ask };
}

describe('what is asked while a run is under way', () => {
  it('shares its failure', async () => {
    const { runs, ask } = heldRuns();
    const answers = Promise.allSettled([ask(), ask()]);

    runs[0]!.reject(new Error('no'));

    expect((await answers).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(runs).toHaveLength(1);
  });

  it.each(['resolve', 'reject'] as const)('gets a new run after it (%s)', async (end) => {
    const { runs, ask } = heldRuns();
    const first = ask().catch(() => {});
    runs[0]![end]('over' as never);
    await first;

    void ask();

    expect(runs).toHaveLength(2);
  });

  it('gets a run of its own in another situation, which does not end with the first', async () => {
    let accepting = true;
    const { runs, ask } = heldRuns(() => accepting);
    const before = ask();
    accepting = false;
    const after = ask();
    expect(runs).toHaveLength(2);

    runs[0]!.resolve('well');
    expect(await before).toBe('well');
    void ask();

    expect(runs).toHaveLength(2);
    runs[1]!.resolve('draining');
    expect(await after).toBe('draining');
  });
});
