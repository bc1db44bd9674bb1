import 'reflect-metadata';
import { Injectable, Logger, Module, type Type } from '@nestjs/common';
import { Cron, Interval, ScheduleModule, SchedulerRegistry, Timeout } from '@nestjs/schedule';
import { CronJob, CronTime } from 'cron';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { ClusterScheduleModule, EveryWorker } from '../../../src/schedule/index.js';
import { ClusterTestingModule } from '../../../src/testing/index.js';
import { contextOf } from '../support/nest-app.js';
import { appOf, NOW } from '../support/scheduled-app.js';

/** Names of what has run. */
const ran: string[] = [];

beforeEach(() => {
  vi.useFakeTimers({ now: NOW + 100 });
  ran.length = 0;
});

/** Runs until shortly after the next second. */
const oneSecond = () => vi.advanceTimersByTimeAsync(950);
const eachSecond = (name: string) => new CronJob('* * * * * *', () => void ran.push(name));

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

@Injectable()
class One {
  @Cron('* * * * * *', { name: 'each-second' }) cron() {
    ran.push('cron');
  }
}

/** Nest gives these to the constructor. */
function injected<T extends Type>(type: T, ...of: Type[]): T {
  Reflect.defineMetadata('design:paramtypes', of, type);
  return type;
}

describe('ClusterScheduleModule', () => {
  it('runs all jobs in the leader, and counts those that the leader alone runs', async () => {
    const { counted } = await appOf(true, Jobs);
    await oneSecond();
    expect(ran.toSorted()).toEqual(['cron', 'every cron', 'every interval', 'interval', 'timeout']);
    expect(counted.toSorted()).toEqual([
      'Jobs.cron succeeded',
      'Jobs.interval succeeded',
      'Jobs.timeout succeeded',
    ]);
  });

  it('runs only jobs for every worker in the others, where all jobs are registered', async () => {
    const { app } = await appOf(false, Jobs);
    await oneSecond();
    expect(ran.toSorted()).toEqual(['every cron', 'every interval']);
    const registry = app.get(SchedulerRegistry);
    expect(registry.getCronJobs().size).toBe(2);
    expect(registry.getIntervals()).toContain('often');
    expect(registry.getTimeouts()).toContain('once');

    await registry.getCronJob('each-second').fireOnTick();
    expect(ran).toContain('cron');
  });

  it('lists the jobs that only the leader runs', async () => {
    const log = vi.spyOn(Logger.prototype, 'log').mockImplementation(() => {});
    await appOf(true, Jobs);
    await vi.advanceTimersByTimeAsync(1);
    expect(log.mock.calls.flat()).toContain(
      '3 scheduled jobs run in one worker, the leader: Jobs.cron, Jobs.interval, Jobs.timeout; 2 run in every worker',
    );
  });

  it('is refused without ScheduleModule, with what to do', async () => {
    const start = contextOf({ imports: [ClusterTestingModule.forRoot(), ClusterScheduleModule] });
    await expect(start).rejects.toThrow('add ScheduleModule.forRoot() from @nestjs/schedule');
  });
});

describe.each([true, false])('a cron job (leader: %s)', (isLeader) => {
  const once = isLeader ? 1 : 0;

  it.each(['a constructor', 'a hook'])('is gated if %s has added it', async (place) => {
    class Adds {
      constructor(private readonly registry: SchedulerRegistry) {
        if (place === 'a constructor') this.add();
      }
      onModuleInit() {
        if (place === 'a hook') this.add();
      }
      add() {
        const job = eachSecond('added');
        this.registry.addCronJob('added', job);
        job.start();
      }
    }
    await appOf(isLeader, injected(Adds, SchedulerRegistry));
    await oneSecond();
    expect(ran).toHaveLength(once);
  });

  it('is gated once if several modules import ClusterScheduleModule', async () => {
    @Module({ imports: [ClusterScheduleModule.forRoot(), ClusterScheduleModule] })
    class Feature {}
    const { counted } = await appOf(isLeader, One, Feature);
    await oneSecond();
    expect(counted).toHaveLength(once);
  });

  it('runs once for each ScheduleModule, as it does without a cluster', async () => {
    await appOf(isLeader, One, ScheduleModule.forRoot());
    await oneSecond();
    expect(ran).toHaveLength(2 * once);
  });

  /** The second ends while the job looks for its next one. The package cron then calls it immediately. */
  const missOnce = () => {
    const timeout = vi.spyOn(CronTime.prototype, 'getTimeout').mockReturnValueOnce(-5);
    vi.spyOn(console, 'warn').mockImplementation(() => {});
    return timeout;
  };

  it('does not run before it is gated', async () => {
    const timeout = missOnce();
    await appOf(isLeader, One);
    expect(timeout).toHaveBeenCalledTimes(2);
    expect(ran).toHaveLength(0);
    await oneSecond();
    expect(ran).toHaveLength(once);
  });

  it('is gated if one tick comes inside another', async () => {
    await appOf(isLeader, One);
    const timeout = missOnce();
    await oneSecond();
    expect(timeout).toHaveBeenCalledTimes(2);
    expect(ran).toHaveLength(once);
    await oneSecond();
    expect(ran).toHaveLength(2 * once);
  });
});

describe('a cron job in the registry', () => {
  it('is counted once under its last name, however often it was deleted and added', async () => {
    const { app, counted } = await appOf(true, One);
    const registry = app.get(SchedulerRegistry);
    const jobs = { added: eachSecond('added'), 'each-second': registry.getCronJob('each-second') };
    registry.addCronJob('added', jobs.added);
    for (const [key, job] of Object.entries(jobs)) {
      registry.deleteCronJob(key);
      registry.addCronJob(`${key} again`, job);
      job.start();
    }
    await oneSecond();
    expect(counted.toSorted()).toEqual(['One.cron succeeded', 'added again succeeded']);
    expect(ran.toSorted()).toEqual(['added', 'cron']);
  });

  it('leaves its name to the next job when it is deleted', async () => {
    const { app, counted } = await appOf(true, One);
    const registry = app.get(SchedulerRegistry);
    for (let n = 0; n < 3; n += 1) {
      const job = eachSecond('reminder');
      registry.addCronJob('reminder', job);
      job.start();
      if (n < 2) registry.deleteCronJob('reminder');
    }
    await oneSecond();
    expect(counted.toSorted()).toEqual(['One.cron succeeded', 'reminder succeeded']);
  });

  it('counts callbacks that are added to it later', async () => {
    const { app, counted } = await appOf(true, One);
    const job = app.get(SchedulerRegistry).getCronJob('each-second');
    job.addCallback(() => void ran.push('later'));
    await oneSecond();
    expect([counted, ran]).toEqual([
      ['One.cron succeeded', 'One.cron succeeded'],
      ['cron', 'later'],
    ]);
  });
});
