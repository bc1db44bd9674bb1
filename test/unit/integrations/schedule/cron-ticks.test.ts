import { CronJob } from 'cron';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { divertTicks, tickOwed } from '../../../../src/integrations/schedule/cron-ticks.js';
import { NOW } from '../../support/scheduled-app.js';

beforeEach(() => void vi.useFakeTimers({ now: NOW + 100 }));
afterEach(() => void vi.useRealTimers());

describe('the tick that a timer brings', () => {
  /** A job of 12:00:00 that is 500 ms away, and when it says that it was due. */
  function start(isStarted: boolean) {
    vi.setSystemTime(NOW - 500);
    const job = new CronJob('0 0 12 * * *', () => {}, null, isStarted, 'UTC');
    onTestFinished(() => void job.stop());
    const dues: number[] = [];
    divertTicks(job as never, (due) => void dues.push(due), false);
    job.start();
    return dues;
  }
  /** As if the event loop had been blocked, or the process stopped. */
  const passes = (ms: number) => {
    vi.setSystemTime(Date.now() + ms);
    const now = performance.now.bind(performance);
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + ms);
    onTestFinished(() => clock.mockRestore());
  };

  it.each([true, false])('was due when it was planned (started before: %s)', (isStarted) => {
    const dues = start(isStarted);
    passes(1_600);
    vi.advanceTimersByTime(500);
    expect(Date.now()).toBe(NOW + 1_600);
    expect(dues).toEqual([NOW]);
  });

  it('was due when it came, where the clock was set meanwhile', () => {
    const dues = start(true);
    vi.setSystemTime(NOW + 3_600_000);
    vi.advanceTimersByTime(500);
    expect(dues).toEqual([NOW + 3_600_000]);
  });
});

describe('the tick that is owed', () => {
  it.each([
    { pattern: '* * * * * *', since: -2_500, now: 300, owed: 0 },
    { pattern: '* * * * * *', since: 100, now: 900, owed: undefined },
    { pattern: '0 0 12 * * *', since: -1, now: 120_400, owed: 120_000 },
    { pattern: '0 0 12 * * *', since: 0, now: 120_400, owed: undefined },
    // At that time in that zone it is not noon.
    { pattern: '0 0 12 * * *', zone: 'Asia/Tokyo', since: -1, now: 120_400, owed: undefined },
    { pattern: '0 0 21 * * *', zone: 'Asia/Tokyo', since: -1, now: 900, owed: 0 },
  ])('of $pattern is found ($since, $now, $zone)', ({ pattern, zone, since, now, owed }) => {
    vi.setSystemTime(NOW + now);
    const job = new CronJob(pattern, () => {}, null, true, zone ?? 'UTC');
    onTestFinished(() => void job.stop());
    const found = tickOwed(job as never, NOW + since, NOW + now);
    expect(found).toBe(owed === undefined ? undefined : NOW + owed);
  });

  it('of a date is that date, once', () => {
    const job = new CronJob(new Date(NOW + 400), () => {}, null, true);
    vi.advanceTimersByTime(400);
    expect(job.isActive).toBe(false);
    expect(tickOwed(job as never, NOW, NOW + 500)).toBe(NOW + 400);
    expect(tickOwed(job as never, NOW + 400, NOW + 500)).toBeUndefined();
  });

  it('of a date is none where the job was stopped before, or not started', () => {
    const stopped = new CronJob(new Date(NOW + 400), () => {}, null, true);
    void stopped.stop();
    const disabled = new CronJob(new Date(NOW + 400), () => {});
    vi.advanceTimersByTime(400);
    for (const job of [stopped, disabled])
      expect(tickOwed(job as never, NOW, NOW + 500)).toBeUndefined();
  });

  it('is none of a job that is stopped', () => {
    const job = new CronJob('* * * * * *', () => {});
    expect(tickOwed(job as never, NOW - 5_000, NOW)).toBeUndefined();
  });
});
