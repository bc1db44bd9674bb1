/** What is used of a `CronJob` of the package cron. */
export interface CronJob {
  readonly isActive: boolean;
  readonly cronTime: CronTime;
  fireOnTick: () => Promise<void>;
  /** Its timer calls it for the next tick before it calls `fireOnTick()` for this one. */
  start: () => void;
  /** A new object for each tick of its timer. */
  lastDate(): { getTime(): number } | null;
  nextDate(): CronDate;
  /** Private there. */
  _callbacks?: ((...args: unknown[]) => unknown)[];
}

interface CronTime {
  /** It has one tick, at `source`. */
  readonly realDate: boolean;
  readonly source: string | CronDate;
  getNextDateFrom(start: CronDate): CronDate;
}

/** Of luxon, in the time zone of its job. */
interface CronDate {
  toMillis(): number;
  minus(ms: number): CronDate;
}

/** Has `tick` called where its timer would call it, with the time for which that was due. */
export function divertTicks(job: CronJob, tick: (due: number) => unknown): void {
  const { fireOnTick: run, start } = job;
  let last = job.lastDate();
  const fired: number[] = [];
  const look = (): void => {
    const date = job.lastDate();
    if (date === last || date === null) return;
    last = date;
    fired.push(date.getTime());
  };
  // A timer that is late for the next tick, too, has that called from here, before this one.
  job.start = () => {
    look();
    start.call(job);
  };
  job.fireOnTick = async () => {
    look();
    const at = fired.shift();
    // Whoever calls fireOnTick() itself is served.
    if (at === undefined) return run();
    await tick(dueAt(job, at));
  };
}

/** The tick of a timer that was late for its first one, and had it called by the constructor of its job. */
export function tickBefore(job: CronJob): number {
  return dueAt(job, job.lastDate()?.getTime() ?? Date.now());
}

/** The last tick that was due after `since` and up to `now`. */
export function tickOwed(job: CronJob, since: number, now: number): number | undefined {
  if (job.cronTime.realDate) {
    const due = dueAt(job, now);
    return due > since && due <= now ? due : undefined;
  }
  if (!job.isActive) return undefined;
  const next = job.nextDate();
  const first = job.cronTime.getNextDateFrom(next.minus(next.toMillis() - since));
  return first.toMillis() <= now ? dueAt(job, now) : undefined;
}

/** When the tick was due that a timer has brought: patterns have no less than seconds. */
function dueAt({ cronTime: { realDate, source } }: CronJob, firedAt: number): number {
  return realDate ? (source as CronDate).toMillis() : Math.floor(firedAt / 1_000) * 1_000;
}
