import type { SchedulerRegistry } from '@nestjs/schedule';
import { clockMs, wasClockSet } from '../../contract/ipc/machine-clock.js';

/** The job of the package cron, in the version that @nestjs/schedule brings. */
export type CronJob = Parameters<SchedulerRegistry['addCronJob']>[1];

/**
 * Has `tick` called where its timer would call it, with the time for which that was due.
 *
 * @param isEarly its first tick came while it was made, and was put off: it is called now.
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
    // A timer may be late by more than a second, and the tick have been another worker's.
    const isAsPlanned = plannedAt <= date.getTime() && !wasClockSet(clock);
    dues.push(isAsPlanned ? plannedAt : dueAt(job, date.getTime()));
  };
  const plan = (): void => {
    const isTimed = job.isActive && !job.cronTime.realDate;
    plannedAt = isTimed ? job.nextDate().toMillis() : NaN;
    clock = clockMs();
  };
  // A timer that is late for the next tick, too, has that called from here, before this one.
  job.start = () => {
    look();
    plannedAt = NaN;
    start();
    plan();
  };
  job.fireOnTick = async () => {
    look();
    const due = dues.shift();
    // A caller of fireOnTick() is served.
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
    // Its timer calls it once. One that never did was stopped, or not started.
    const isOn = isActive || (job.lastDate()?.getTime() ?? -Infinity) >= due;
    return isOn && due > since && due <= now ? due : undefined;
  }
  if (!isActive) return undefined;
  const next = job.nextDate(); // of luxon, in the time zone of the job
  const first = cronTime.getNextDateFrom(next.minus(next.toMillis() - since));
  return first.toMillis() <= now ? dueAt(job, now) : undefined;
}

/** When the tick was due that a timer has brought: patterns have no less than seconds. */
function dueAt({ cronTime: { realDate, source } }: CronJob, firedAt: number): number {
  return realDate ? (source.valueOf() as number) : Math.floor(firedAt / 1_000) * 1_000;
}
