import type { SchedulerRegistry } from '@nestjs/schedule';

/** `CronJob` of the cron package, in the version that @nestjs/schedule depends on. */
export type CronJob = Parameters<SchedulerRegistry['addCronJob']>[1];

/**
 * Makes the job run only at due times that this worker owns, once per due time. A direct call to
 * `fireOnTick()` always runs the job.
 *
 * @param owns whether this worker owns a due time, in ms like `Date.now()`.
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
    // A timer may be late by more than a second, so the current time is not the due time.
    dues.push(plannedAt <= date.getTime() ? plannedAt : dueAt(job, date.getTime()));
  };
  const plan = (): void => {
    const isTimed = job.isActive && !job.cronTime.realDate;
    plannedAt = isTimed ? job.nextDate().toMillis() : NaN;
  };
  // If the timer is late, start() can run the next tick before fireOnTick() runs for the current tick.
  job.start = () => {
    look();
    plannedAt = NaN;
    start();
    plan();
  };
  job.fireOnTick = async () => {
    look();
    const due = dues.shift();
    if (due === undefined) return run(); // called by the app
    if (due === handled || !owns(due)) return;
    handled = due;
    await run();
  };
  plan();
}

/** Cron patterns have a resolution of seconds, so the due time is `firedAt` rounded down. */
function dueAt({ cronTime: { realDate, source } }: CronJob, firedAt: number): number {
  return realDate ? (source.valueOf() as number) : Math.floor(firedAt / 1_000) * 1_000;
}
