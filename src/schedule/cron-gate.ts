import type { SchedulerRegistry } from '@nestjs/schedule';

/** The type `CronJob` of the package cron, in the version that @nestjs/schedule depends on. */
export type CronJob = Parameters<SchedulerRegistry['addCronJob']>[1];

/**
 * Makes the job run only at due times that this worker owns, and only once for each of them. If the
 * app calls `fireOnTick()` itself, the job runs.
 *
 * @param owns takes a due time on the scale of `Date.now()`.
 */
export function gateTicks(job: CronJob, owns: (due: number) => boolean): void {
  const run = job.fireOnTick.bind(job);
  const start = job.start.bind(job);
  let last = job.lastDate();
  let plannedAt = NaN;
  let handled = NaN;
  const dues: number[] = [];
  const look = (): void => {
    const date = job.lastDate(); // cron creates a new object for each tick of the timer
    if (date === last || date === null) return;
    last = date;
    // A timer may be late by more than a second, so the time of the call is not the due time.
    dues.push(plannedAt <= date.getTime() ? plannedAt : dueAt(job, date.getTime()));
  };
  const plan = (): void => {
    const isTimed = job.isActive && !job.cronTime.realDate;
    plannedAt = isTimed ? job.nextDate().toMillis() : NaN;
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
    if (due === undefined) return run(); // the app has called fireOnTick()
    if (due === handled || !owns(due)) return;
    handled = due;
    await run();
  };
  plan();
}

/** The due time of a tick that fired at `firedAt`, rounded down, because cron patterns count in seconds. */
function dueAt({ cronTime: { realDate, source } }: CronJob, firedAt: number): number {
  return realDate ? (source.valueOf() as number) : Math.floor(firedAt / 1_000) * 1_000;
}
