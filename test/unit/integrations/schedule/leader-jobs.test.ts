import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { LeaderRole, Leading } from '../../../../src/contract/snapshot/index.js';
import { type Job, LeaderJobs } from '../../../../src/integrations/schedule/leader-jobs.js';

const NOW = 1_800_000_000_000;

beforeEach(() => void vi.useFakeTimers({ now: NOW }));
afterEach(() => void vi.useRealTimers());

/** A worker that does not lead yet. */
function start() {
  const role = {
    leads: false,
    owns: () => role.leads,
    follow: () => {},
    begun: vi.fn<LeaderRole['begun']>(),
  };
  const counted: string[] = [];
  const jobs = new LeaderJobs(
    () => role,
    (job, outcome) => void counted.push(`${job} ${outcome}`),
  );
  const run = vi.fn<() => void>();
  const add = (kind: Job['kind']) => jobs.add({ name: 'job', kind, run });
  const lead = (about: Partial<Leading> = {}) => {
    role.leads = true;
    jobs.told({ isFirst: true, done: [], ...about });
  };
  return { role, counted, jobs, run, add, lead };
}

describe('a job that one worker alone runs', () => {
  it('runs in the leader alone, and once for each time', () => {
    const { add, lead, run } = start();
    const tick = add('cron');
    tick(NOW);
    expect(run).not.toHaveBeenCalled();
    lead();
    tick(NOW + 1);
    tick(NOW + 1);
    expect(run).toHaveBeenCalledTimes(1);
  });

  it('runs at its times though the clock was set back', () => {
    const { add, lead, run } = start();
    const tick = add('cron');
    lead();
    tick(NOW);
    for (const ms of [3_000, 3_600_000]) {
      vi.setSystemTime(NOW - ms);
      tick(NOW - ms);
      tick(NOW - ms); // once
      tick(NOW - ms + 1_000);
    }
    expect(run).toHaveBeenCalledTimes(5);
  });

  it('of an interval runs at the times at which this worker leads', () => {
    const { add, lead, run } = start();
    const fire = add('interval');
    fire();
    lead();
    expect(run).not.toHaveBeenCalled();
    fire();
    expect(run).toHaveBeenCalledTimes(1);
  });

  it('of a timeout does not run once its app is closed', () => {
    const { add, jobs, lead, run } = start();
    add('timeout')();
    jobs.close();
    lead();
    expect(run).not.toHaveBeenCalled();
  });

  it('of a timeout runs once in the cluster, and later where nobody could run it', () => {
    const { add, lead, role, run } = start();
    add('timeout')();
    lead();
    lead();
    expect(run).toHaveBeenCalledTimes(1);
    expect(role.begun.mock.calls).toEqual([['job']]);
  });

  it('of a timeout does not run where another worker has begun it', () => {
    const { add, lead, run } = start();
    const fire = add('timeout');
    lead({ done: ['job'] });
    fire();
    expect(run).not.toHaveBeenCalled();
  });

  it('is counted when it ends', async () => {
    const { counted, jobs } = start();
    const failing = jobs.track('job', () => Promise.reject(new Error('no')));
    expect(jobs.isRunning).toBe(true);
    await expect(failing).rejects.toThrow('no');
    await jobs.track('job', () => 1);
    expect(counted).toEqual(['job failed', 'job succeeded']);
    expect(jobs.isRunning).toBe(false);
  });
});
