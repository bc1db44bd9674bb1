import 'reflect-metadata';
import { Injectable, Module, type Type } from '@nestjs/common';
import { Cron, Interval, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { CronJob } from 'cron';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { ClusterScheduleModule, EveryWorker } from '../../../../src/integrations/schedule/index.js';
import { LeaderJobs } from '../../../../src/integrations/schedule/leader-jobs.js';
import { appOf, NOW } from '../../support/scheduled-app.js';

beforeEach(() => void vi.useFakeTimers({ now: NOW + 100 }));
afterEach(() => void vi.useRealTimers());

/** Names under which runs are counted. */
function runsOfJobs(): () => string[] {
  const track = vi.spyOn(LeaderJobs.prototype, 'track');
  onTestFinished(() => track.mockRestore());
  return () => track.mock.calls.map(([name]) => name);
}

@Injectable()
class Jobs {
  @Cron('* * * * * *', { name: 'each-second' }) cron() {}
  @Interval(700) interval() {}
}

const ran: string[] = [];
const addedJob = () => new CronJob('* * * * * *', () => void ran.push('added'));
beforeEach(() => void ran.splice(0));

/** It is injected what one of them is told in the constructor. */
function injected<T extends Type>(type: T, ...of: Type[]): T {
  Reflect.defineMetadata('design:paramtypes', of, type);
  return type;
}

describe('a cron job in the registry', () => {
  it('counts a run as one however often it was taken out and put back', async () => {
    const runs = runsOfJobs();
    const app = await appOf(true, Jobs);
    const registry = app.get(SchedulerRegistry);
    const job = addedJob();
    for (const key of ['first', 'second', 'third']) {
      registry.addCronJob(key, job);
      job.start();
      if (key !== 'third') registry.deleteCronJob(key);
    }
    const declared = registry.getCronJob('each-second');
    registry.deleteCronJob('each-second');
    registry.addCronJob('again', declared);
    declared.start();
    await vi.advanceTimersByTimeAsync(950);
    expect(runs().toSorted()).toEqual(['Jobs.cron', 'Jobs.interval', 'third']);
    expect(ran).toEqual(['added']);
  });

  it.each([
    { isLeader: true, runs: ['built'] },
    { isLeader: false, runs: [] },
  ])('is gated where a constructor added it (leader: $isLeader)', async ({ isLeader, runs }) => {
    class Builds {
      constructor(registry: SchedulerRegistry) {
        const job = new CronJob('* * * * * *', () => void ran.push('built'));
        registry.addCronJob('built', job);
        job.start();
      }
    }
    const gate = vi.spyOn(LeaderJobs.prototype, 'add');
    onTestFinished(() => gate.mockRestore());
    await appOf(isLeader, injected(Builds, SchedulerRegistry));
    await vi.advanceTimersByTimeAsync(950);
    expect(ran).toEqual(runs);
  });

  it('counts what is added to it later', async () => {
    const runs = runsOfJobs();
    const app = await appOf(true, Jobs);
    app
      .get(SchedulerRegistry)
      .getCronJob('each-second')
      .addCallback(() => void ran.push('later'));
    await vi.advanceTimersByTimeAsync(950);
    expect([runs(), ran]).toEqual([['Jobs.interval', 'Jobs.cron', 'Jobs.cron'], ['later']]);
  });
});

describe('an app that imports a module twice', () => {
  @Module({ imports: [ClusterScheduleModule.forRoot(), ClusterScheduleModule] })
  class Feature {}

  it('has jobs that are gated once', async () => {
    const runs = runsOfJobs();
    await appOf(true, Jobs, Feature);
    await vi.advanceTimersByTimeAsync(950);
    expect(runs().toSorted()).toEqual(['Jobs.cron', 'Jobs.interval']);
  });

  it.each([true, false])('has all jobs gated (leader: %s)', async (isLeader) => {
    @Injectable()
    class Two {
      @Cron('* * * * * *') cron() {
        ran.push('cron');
      }
      @EveryWorker() @Cron('* * * * * *') everywhere() {}
    }
    await appOf(isLeader, Two, ScheduleModule.forRoot());
    await vi.advanceTimersByTimeAsync(950);
    // Each ScheduleModule explores the whole app, as it does without a cluster.
    expect(ran).toEqual(isLeader ? ['cron', 'cron'] : []);
  });
});
