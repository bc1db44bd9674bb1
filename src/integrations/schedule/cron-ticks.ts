import type { SchedulerRegistry } from '@nestjs/schedule';
import { clockMs, wasClockSet } from '../../contract/ipc/machine-clock.js';

/** The job of the package cron, in the version that @nestjs/schedule brings. */
export type CronJob = Parameters<SchedulerRegistry['addCronJob']>[1];

/**
 * Makes the job's timer call `tick`, with the time at which the tick was due.
 *
 * @param isEarly the first tick came while the job was made, and was put off. It is called now.
 */
export function divertTicks(job: CronJob, tick: (due: number) => unknown, isEarly: boolean): void {
  const run = job.fireOnTick.bind(job);
  const start = job.start.bind(job);
  let last = isEarly ? null : job.lastDate();
  let plannedAt = NaN;
  let clock = 0;
  const dues: number[] = [];
  const look = (): void => {
    const date = job.lastDate(); // a new object for each tick of its timer
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
  // If the timer is late for the next tick too, cron calls that tick from start(), before this one.
  job.start = () => {
    look();
    plannedAt = NaN;
    start();
    plan();
  };
  job.fireOnTick = async () => {
    look();
    const due = dues.shift();
    // The app itself has called fireOnTick().
    if (due === undefined) return run();
    await tick(due);
  };
  plan();
  if (isEarly) void job.fireOnTick();
}

/** The last tick that was due after `since` and up to `now`. */
export function tickOwed(job: CronJob, since: number, now: number): number | undefined {
  const { cronTime, isActive } = job;
  if (cronTime.realDate) {
    const due = dueAt(job, now);
    // Its timer calls once. A job that is not active and has not run was stopped or never started.
    const isOn = isActive || (job.lastDate()?.getTime() ?? -Infinity) >= due;
    return isOn && due > since && due <= now ? due : undefined;
  }
  if (!isActive) return undefined;
  const next = job.nextDate(); // of luxon, in the time zone of the job
  const first = cronTime.getNextDateFrom(next.minus(next.toMillis() - since));
  return first.toMillis() <= now ? dueAt(job, now) : undefined;
}

/** When a tick that fired at a time was due: the smallest unit of a pattern is a second. */
function dueAt({ cronTime: { realDate, source } }: CronJob, firedAt: number): number {
  return realDate ? (source.valueOf() as number) : Math.floor(firedAt / 1_000) * 1_000;
}
