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
    tellRunning: vi.fn<LeaderRole['tellRunning']>(),
  };
  const counted: string[] = [];
  const jobs = new LeaderJobs(
    () => role,
    (job, outcome) => void counted.push(`${job} ${outcome}`),
  );
  const run = vi.fn<() => void>();
  const add = (kind: Job['kind'], owed?: Job['owed']) =>
    jobs.add({ name: 'job', kind, run, ...(owed && { owed }) });
  const lead = (about: Partial<Leading> = {}) => {
    role.leads = true;
    jobs.told({ fresh: true, since: undefined, busy: [], done: [], ...about });
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

  it('is made up for once, where it was due between two leaders', () => {
    const { add, lead, run } = start();
    const owed = vi.fn<NonNullable<Job['owed']>>((since) => (since < NOW ? NOW : undefined));
    const tick = add('cron', owed);
    lead({ since: NOW - 2_000 });
    expect(owed).toHaveBeenCalledWith(NOW - 2_000, NOW);
    tick(NOW); // its own timer is late
    lead({ since: NOW - 2_000 });
    expect(run).toHaveBeenCalledTimes(1);
  });

  it('is not made up for once it was removed', () => {
    const { add, lead, run, jobs } = start();
    add('cron', () => NOW);
    jobs.remove('job');
    lead({ since: NOW - 2_000 });
    expect(run).not.toHaveBeenCalled();
    expect(jobs.names).toEqual([]);
  });

  it('runs at its times though the clock was set back', () => {
    const { add, lead, run } = start();
    const tick = add('cron');
    lead();
    tick(NOW);
    tick(NOW - 1_000); // its own, that is late: it was run as one that was owed
    expect(run).toHaveBeenCalledTimes(1);
    for (const ms of [3_000, 3_600_000]) {
      vi.setSystemTime(NOW - ms);
      tick(NOW - ms);
      tick(NOW - ms); // once
      tick(NOW - ms + 1_000);
    }
    expect(run).toHaveBeenCalledTimes(5);
  });

  it('is made up for though the clock was set back since its last run', () => {
    const { add, lead, run } = start();
    const tick = add('cron', (since) => (since < NOW - 3_600_000 ? NOW - 3_600_000 : undefined));
    lead();
    tick(NOW);
    vi.setSystemTime(NOW - 3_599_900);
    lead({ since: NOW - 3_600_500 });
    expect(run).toHaveBeenCalledTimes(2);
  });

  it('is not made up for once its app is closed', () => {
    const { add, jobs, lead, run } = start();
    add('timeout')();
    add('cron', () => NOW);
    jobs.close();
    lead({ since: NOW - 2_000 });
    expect(run).not.toHaveBeenCalled();
  });

  it('is not made up for where nobody led before', () => {
    const { add, lead, run } = start();
    add('cron', () => NOW);
    lead();
    expect(run).not.toHaveBeenCalled();
  });

  it('of an interval is made up for where it was due after the last leader', () => {
    const { add, lead, run } = start();
    const fire = add('interval');
    fire();
    lead({ since: NOW + 1 });
    expect(run).not.toHaveBeenCalled();
    lead({ since: NOW - 1 });
    expect(run).toHaveBeenCalledTimes(1);
    fire();
    expect(run).toHaveBeenCalledTimes(2);
  });

  it('of a timeout runs once in the cluster, and later where nobody could run it', () => {
    const { add, jobs, lead, role, run } = start();
    add('timeout')();
    lead();
    lead();
    expect(run).toHaveBeenCalledTimes(1);
    expect(role.tellRunning).toHaveBeenCalledWith(jobs, [], 'job');
  });

  it('of a timeout does not run where another worker has begun it', () => {
    const { add, lead, run } = start();
    const fire = add('timeout');
    lead({ done: ['job'] });
    fire();
    expect(run).not.toHaveBeenCalled();
  });

  it('waits until it has ended in another worker', () => {
    const { add, counted, lead, run } = start();
    const tick = add('cron');
    lead({ busy: ['job'] });
    tick(NOW);
    expect([run.mock.calls.length, counted]).toEqual([0, ['job skipped']]);
    lead({ fresh: false });
    lead({ fresh: false });
    expect(run).toHaveBeenCalledTimes(1);
  });

  it('is told to others before it begins, and counted when it ends', async () => {
    const { counted, jobs, role } = start();
    const failing = jobs.track('job', async () => {
      expect(role.tellRunning.mock.calls).toEqual([[jobs, ['job'], undefined]]);
      throw new Error('no');
    });
    expect(jobs.isRunning).toBe(true);
    await expect(failing).rejects.toThrow('no');
    await jobs.track('job', () => 1);
    expect(counted).toEqual(['job failed', 'job succeeded']);
    expect(role.tellRunning.mock.calls.at(-1)).toEqual([jobs, [], undefined]);
    expect(jobs.isRunning).toBe(false);
  });
});
