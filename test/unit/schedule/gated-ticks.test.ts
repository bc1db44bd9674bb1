import { CronJob } from 'cron';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { gateTicks } from '../../../src/schedule/scheduled-jobs.js';
import { NOW } from '../support/scheduled-app.js';

beforeEach(() => void vi.useFakeTimers({ now: NOW - 500 }));

/** A job of 12:00:00, or of another pattern, that is owned unless `owns` says otherwise. */
function start({
  pattern = '0 0 12 * * *',
  isStarted = true,
  owns = vi.fn((_due: number) => true),
} = {}) {
  const ran: number[] = [];
  const job = new CronJob(pattern, () => void ran.push(Date.now()), null, isStarted, 'UTC');
  onTestFinished(() => void job.stop());
  gateTicks(job as never, owns);
  job.start();
  return { job, ran, owns, dues: () => owns.mock.calls.map(([due]) => due) };
}

/** As if the event loop had been blocked, or the process stopped. */
function passes(ms: number): void {
  vi.setSystemTime(Date.now() + ms);
  const now = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => now() + ms);
}

it.each([true, false])(
  'the due time of a tick is the planned time (started before: %s)',
  (isStarted) => {
    const { dues, ran } = start({ isStarted });
    passes(1_600);
    vi.advanceTimersByTime(500);
    expect(Date.now()).toBe(NOW + 1_600);
    expect(dues()).toEqual([NOW]);
    expect(ran).toHaveLength(1);
  },
);

describe('a tick', () => {
  it('does not run the job if this worker does not own it', () => {
    const { ran, dues } = start({ owns: vi.fn(() => false) });
    vi.advanceTimersByTime(500);
    expect(dues()).toEqual([NOW]);
    expect(ran).toEqual([]);
  });

  it.each([3_000, 3_600_000])('runs the job again at the same times, %i ms back', (ms) => {
    const { ran } = start({ pattern: '* * * * * *' });
    vi.advanceTimersByTime(2_500);
    expect(ran).toHaveLength(3);
    vi.setSystemTime(NOW + 2_000 - ms);
    vi.advanceTimersByTime(4_000); // cron waits a second longer for a timer that seems early
    expect(ran).toHaveLength(6);
  });

  it('that the app makes runs the job in any worker', async () => {
    const { job, ran } = start({ owns: vi.fn(() => false) });
    await job.fireOnTick();
    expect(ran).toHaveLength(1);
  });
});
