import 'reflect-metadata';
import { Injectable, Logger, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Cron, Interval, SchedulerRegistry, Timeout } from '@nestjs/schedule';
import { CronJob, CronTime } from 'cron';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { ClusterScheduleModule, EveryWorker } from '../../../../src/integrations/schedule/index.js';
import { LeaderJobs } from '../../../../src/integrations/schedule/leader-jobs.js';
import { ClusterTestingModule } from '../../../../src/integrations/testing/index.js';
import { appOf, NOW } from '../../support/scheduled-app.js';

beforeEach(() => void vi.useFakeTimers({ now: NOW + 100 }));
afterEach(() => void vi.useRealTimers());

/** Names of what has run. */
const ran: string[] = [];
beforeEach(() => void ran.splice(0));

@Injectable()
class Jobs {
  @Cron('* * * * * *', { name: 'each-second' }) cron() {
    ran.push('cron');
  }
  @Interval('often', 700) interval() {
    ran.push('interval');
  }
  @Timeout('once', 500) timeout() {
    ran.push('timeout');
  }
  @EveryWorker() @Cron('* * * * * *') everyCron() {
    ran.push('every cron');
  }
  @EveryWorker() @Interval(700) everyInterval() {
    ran.push('every interval');
  }
}

describe('ClusterScheduleModule', () => {
  it('runs all jobs in the leader', async () => {
    await appOf(true, Jobs);
    await vi.advanceTimersByTimeAsync(950);
    expect(ran.toSorted()).toEqual(['cron', 'every cron', 'every interval', 'interval', 'timeout']);
  });

  it('runs what is for every worker alone in the others, where all is registered', async () => {
    const app = await appOf(false, Jobs);
    await vi.advanceTimersByTimeAsync(950);
    expect(ran.toSorted()).toEqual(['every cron', 'every interval']);
    const registry = app.get(SchedulerRegistry);
    expect(registry.getCronJobs().size).toBe(2);
    expect(registry.getIntervals()).toContain('often');
    expect(registry.getTimeouts()).toContain('once');

    await registry.getCronJob('each-second').fireOnTick();
    expect(ran).toContain('cron');
  });

  it.each([
    { isLeader: true, runs: 1 },
    { isLeader: false, runs: 0 },
  ])('gates jobs that a hook adds (leader: $isLeader)', async ({ isLeader, runs }) => {
    @Injectable()
    class Adds {
      constructor(private readonly registry: SchedulerRegistry) {}
      onModuleInit() {
        const job = new CronJob('* * * * * *', () => void ran.push('added'));
        this.registry.addCronJob('added', job);
        job.start();
      }
    }
    Reflect.defineMetadata('design:paramtypes', [SchedulerRegistry], Adds);
    await appOf(isLeader, Adds);
    await vi.advanceTimersByTimeAsync(950);
    expect(ran).toHaveLength(runs);
  });

  describe.each([true, false])('of a timer that is late (leader: %s)', (isLeader) => {
    @Injectable()
    class EachSecond {
      @Cron('* * * * * *') cron() {
        ran.push('cron');
      }
    }
    /** The second ends while the job looks for its next one: cron then calls it at once. */
    const missOnce = () => {
      const timeout = vi.spyOn(CronTime.prototype, 'getTimeout').mockReturnValueOnce(-5);
      vi.spyOn(console, 'warn').mockImplementation(() => {});
      onTestFinished(() => void vi.restoreAllMocks());
      return timeout;
    };

    it('gates the tick that comes before the job is registered', async () => {
      const timeout = missOnce();
      await appOf(isLeader, EachSecond);
      expect(timeout).toHaveBeenCalledTimes(2);
      expect(ran).toHaveLength(isLeader ? 1 : 0);
      await vi.advanceTimersByTimeAsync(950);
      expect(ran).toHaveLength(isLeader ? 2 : 0);
    });

    it('gates both where one comes inside the other', async () => {
      await appOf(isLeader, EachSecond);
      const timeout = missOnce();
      await vi.advanceTimersByTimeAsync(950);
      expect(timeout).toHaveBeenCalledTimes(2);
      expect(ran).toHaveLength(isLeader ? 1 : 0);
      await vi.advanceTimersByTimeAsync(1_000);
      expect(ran).toHaveLength(isLeader ? 2 : 0);
    });
  });

  it('forgets a job that is deleted, and gives its name to the next one', async () => {
    const app = await appOf(true, Jobs);
    const known = vi.spyOn(LeaderJobs.prototype, 'add');
    onTestFinished(() => known.mockRestore());
    const registry = app.get(SchedulerRegistry);
    for (let n = 0; n < 3; n += 1) {
      const job = new CronJob('* * * * * *', () => void ran.push('added'));
      registry.addCronJob('reminder', job);
      job.start();
      if (n < 2) registry.deleteCronJob('reminder');
    }
    expect(known.mock.calls.map(([{ name }]) => name)).toEqual(Array(3).fill('reminder'));
    const [jobs] = known.mock.contexts as [LeaderJobs];
    expect(jobs.names.filter((name) => name === 'reminder')).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(950);
    expect(ran.filter((name) => name === 'added')).toHaveLength(1);
  });

  @Injectable()
  class One {
    @Cron('* * * * * *') cron() {}
  }

  it.each([
    [
      Jobs,
      '3 scheduled jobs run in one worker, the leader: Jobs.interval, Jobs.timeout, Jobs.cron; 2 run in every worker',
    ],
    [One, '1 scheduled job runs in one worker, the leader: One.cron'],
  ])('lists what one worker alone runs of %o', async (provider, line) => {
    const log = vi.spyOn(Logger.prototype, 'log').mockImplementation(() => {});
    onTestFinished(() => log.mockRestore());
    await appOf(true, provider);
    await vi.advanceTimersByTimeAsync(1);
    expect(log.mock.calls.flat()).toContain(line);
  });

  it('is refused without ScheduleModule, with what to do', async () => {
    @Module({ imports: [ClusterTestingModule.forRoot(), ClusterScheduleModule] })
    class AppModule {}
    const start = NestFactory.createApplicationContext(AppModule, {
      logger: false,
      abortOnError: false,
    });
    await expect(start).rejects.toThrow('add ScheduleModule.forRoot() to the imports');
  });
});
