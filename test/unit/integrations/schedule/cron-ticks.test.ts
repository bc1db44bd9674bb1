import { CronJob } from 'cron';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { divertTicks } from '../../../../src/integrations/schedule/cron-ticks.js';
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
