import { describe, expect, it, vi } from 'vitest';
import type { LeaderRole, Leading } from '../../../src/contract/snapshot/types.js';
import { LeaderJobs, type TimerJob } from '../../../src/schedule/leader-jobs.js';

/** A worker that does not lead yet. */
function start() {
  const role = {
    leads: false,
    owns: () => role.leads,
    follow: () => {},
    begun: vi.fn<LeaderRole['begun']>(),
  };
  const jobs = new LeaderJobs(() => role);
  const run = vi.fn<() => void>();
  const timer = (kind: TimerJob['kind']) => jobs.timed({ name: 'job', kind, run });
  const lead = (about: Partial<Leading> = {}) => {
    role.leads = true;
    jobs.lead({ isFirst: true, done: [], ...about });
  };
  return { role, jobs, run, timer, lead };
}

describe('a job of a timeout', () => {
  it('runs once in the cluster, and later if it was due without a leader', () => {
    const { timer, lead, role, run } = start();
    timer('timeout')();
    lead();
    lead();
    expect(run).toHaveBeenCalledTimes(1);
    expect(role.begun.mock.calls).toEqual([['job']]);
  });

  it('does not run if another worker has begun it', () => {
    const { timer, lead, run } = start();
    const fire = timer('timeout');
    lead({ done: ['job'] });
    fire();
    expect(run).not.toHaveBeenCalled();
  });

  it('does not run after its app was closed', () => {
    const { timer, jobs, lead, run } = start();
    timer('timeout')();
    jobs.close();
    lead();
    expect(run).not.toHaveBeenCalled();
  });
});

it('a job runs, for a drain that waits, until it ends or fails, and its end is counted', async () => {
  const { jobs } = start();
  const count = vi.fn();
  jobs.metrics = { count } as never;
  const failing = jobs.tracked({ name: 'job' }, () => Promise.reject(new Error('no')))();
  expect(jobs.isRunning).toBe(true);
  await expect(failing).rejects.toThrow('no');
  expect(jobs.isRunning).toBe(false);
  expect(count).toHaveBeenCalledWith('job', 'failed');
});
