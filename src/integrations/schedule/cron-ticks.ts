import type { SchedulerRegistry } from '@nestjs/schedule';
import { clockMs, wasClockSet } from '../../contract/process/machine-clock.js';

/** The type `CronJob` of the package cron, in the version that @nestjs/schedule depends on. */
export type CronJob = Parameters<SchedulerRegistry['addCronJob']>[1];

/**
 * Makes the job's timer call `tick`, with the time at which the tick was due.
 *
 * @param isEarly whether the first tick came during the job's creation. If so, it is handled now.
 */
export function divertTicks(job: CronJob, tick: (due: number) => unknown, isEarly: boolean): void {
  const run = job.fireOnTick.bind(job);
  const start = job.start.bind(job);
  let last = isEarly ? null : job.lastDate();
  let plannedAt = NaN;
  let clock = 0;
  const dues: number[] = [];
  const look = (): void => {
    const date = job.lastDate(); // cron creates a new object for each tick of the timer
    if (date === last || date === null) return;
    last = date;
    // A timer may be late by more than a second, so the time of the call is not the due time.
    const isAsPlanned = plannedAt <= date.getTime() && !wasClockSet(clock);
    dues.push(isAsPlanned ? plannedAt : dueAt(job, date.getTime()));
  };
  const plan = (): void => {
    const isTimed = job.isActive && !job.cronTime.realDate;
    plannedAt = isTimed ? job.nextDate().toMillis() : NaN;
    clock = clockMs();
  };
  // If the timer is late, start() calls the next tick before cron calls fireOnTick() for the current tick.
  job.start = () => {
    look();
    plannedAt = NaN;
    start();
    plan();
  };
  job.fireOnTick = async () => {
    look();
    const due = dues.shift();
    // Without a due time, the app has called fireOnTick() itself.
    if (due === undefined) return run();
    await tick(due);
  };
  plan();
  if (isEarly) void job.fireOnTick();
}

/** The due time of a tick that fired at `firedAt`, rounded down, because cron patterns count in seconds. */
function dueAt({ cronTime: { realDate, source } }: CronJob, firedAt: number): number {
  return realDate ? (source.valueOf() as number) : Math.floor(firedAt / 1_000) * 1_000;
}
