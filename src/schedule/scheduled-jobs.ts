import {
  Inject,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleInit,
  SetMetadata,
} from '@nestjs/common';
import { ModuleRef, ModulesContainer } from '@nestjs/core';
import type { SchedulerRegistry } from '@nestjs/schedule';
import { ClusterConfigurationError } from '../contract/errors/errors.js';
import { MetricsEndpoint } from '../observe/metrics/metrics.endpoint.js';
import type { ClusterLink } from '../contract/snapshot/cluster-link.js';
import { CLUSTER_LINK, currentLink } from '../contract/snapshot/current-link.js';
import { ProcessLink } from '../worker/link/process-link.js';
import { JobMetrics, LeaderJobs } from './leader-jobs.js';

// Symbol.for(), so that two copies of this package in one process use the same key.
const EVERY_WORKER = Symbol.for('nestjs-cluster.every-worker');

/**
 * Runs a method with `@Cron()`, `@Interval()` or `@Timeout()` in every worker, as without
 * `ClusterScheduleModule`. Use it for work on the process itself, for example to clear its cache.
 */
export function EveryWorker(): MethodDecorator {
  return SetMetadata(EVERY_WORKER, true);
}

/** The kinds of jobs. The keys are metadata values of @nestjs/schedule's decorators. */
const KINDS = { 1: 'cron', 2: 'timeout', 3: 'interval' } as const;

/** `CronJob` of the cron package, in the version that @nestjs/schedule depends on. */
type CronJob = Parameters<SchedulerRegistry['addCronJob']>[1];

type Method = (...args: unknown[]) => unknown;
type Wrap = (method: Method, instance: object) => Method;

/** A cron job declared by a decorator, or added to the registry by the app. */
interface Cron {
  name: string;
  readonly isDeclared: boolean;
  isGated: boolean;
}

/** Finds the jobs of @nestjs/schedule in every worker, and runs them only in the leader. */
@Injectable()
export class ScheduledJobs implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  readonly #logger = new Logger('ClusterScheduleModule');
  readonly #jobs = new LeaderJobs(() => this.#clusterLink.leaderRole);
  /** The declared cron jobs, by the function passed to the cron package. */
  readonly #declared = new Map<unknown, Cron>();
  /** The functions of the jobs that run in every worker. */
  readonly #everywhere = new Set<unknown>();
  readonly #gated = new WeakMap<CronJob, Cron>();
  readonly #unwrap: readonly ((() => void) | undefined)[];
  #link: ClusterLink | undefined;

  constructor(
    @Inject(ModulesContainer) modules: ModulesContainer,
    @Inject(ModuleRef) private readonly moduleRef: ModuleRef,
  ) {
    // Wraps the methods in the constructor, because the app's hooks may add jobs.
    this.#unwrap = [
      wrapMethods(modules, 'ScheduleExplorer', {
        wrapFunctionInTryCatchBlocks: (wrap: Wrap, method: Method, of: object) =>
          this.#wrap(method, of, (each) => wrap(each, of)),
      }),
      wrapMethods(modules, 'SchedulerRegistry', {
        addCronJob: (add: SchedulerRegistry['addCronJob'], key: string, job: CronJob) => {
          add(key, job);
          this.#gateCron(key, job);
        },
        deleteCronJob: (remove: Method, key: string) => {
          remove(key);
          this.#jobs.removeName(key);
        },
      }),
    ];
    // Constructors that ran earlier may already have added jobs.
    for (const { instance } of providersOf<SchedulerRegistry>(modules, 'SchedulerRegistry'))
      for (const [key, job] of instance?.getCronJobs() ?? []) this.#gateCron(key, job);
  }

  /** @throws ClusterConfigurationError without `ScheduleModule`. */
  async onModuleInit(): Promise<void> {
    if (this.#unwrap.every((unwrap) => unwrap !== undefined)) return;
    const error = new ClusterConfigurationError(
      'ClusterScheduleModule found no ScheduleModule; add ScheduleModule.forRoot() from @nestjs/schedule 6 or 12 to the imports',
    );
    await this.#clusterLink.refuseStart(error);
    throw error;
  }

  async onApplicationBootstrap(): Promise<void> {
    await this.#provided<MetricsEndpoint>(MetricsEndpoint)?.extend(
      (client) => (this.#jobs.metrics = new JobMetrics(client)),
    );
    this.#clusterLink.onDrainTasks(() => this.#jobs.isRunning);
    this.#clusterLink.leaderRole.follow((leading) => {
      this.#jobs.lead(leading);
      if (!leading.isFirst) return;
      setImmediate(() => this.#logger.log(this.#jobs.summary(this.#everywhere.size)));
    });
  }

  onApplicationShutdown(): void {
    for (const unwrap of this.#unwrap) unwrap?.();
    this.#jobs.close();
  }

  get #clusterLink(): ClusterLink {
    return (this.#link ??=
      this.#provided<ClusterLink>(CLUSTER_LINK) ?? currentLink() ?? new ProcessLink());
  }

  /** Finds a provider in any module. `undefined` if it is missing, for example without `ClusterModule`. */
  #provided<T>(token: unknown): T | undefined {
    try {
      return this.moduleRef.get<T>(token as string, { strict: false });
    } catch {
      return undefined;
    }
  }

  /** @param wrap the wrapper of @nestjs/schedule, which logs errors of the method. */
  #wrap(method: Method, instance: object, wrap: (method: Method) => Method): unknown {
    if (Reflect.getMetadata(EVERY_WORKER, method) === true) {
      const call = wrap(method);
      this.#everywhere.add(call);
      return call;
    }
    const kind = KINDS[Reflect.getMetadata('SCHEDULER_TYPE', method) as keyof typeof KINDS];
    const name = this.#jobs.addName(`${instance.constructor.name}.${method.name}`);
    const cron: Cron = { name, isDeclared: true, isGated: false };
    const run = wrap(this.#jobs.tracked(cron, method));
    if (kind !== 'cron') return this.#jobs.timed({ name, kind, run });
    // The constructor of a cron job calls `onTick` if a tick is due at that moment, before the job is gated.
    const onTick: Method = (...args) => (cron.isGated ? run(...args) : undefined);
    this.#declared.set(onTick, cron);
    return onTick;
  }

  #gateCron(key: string, job: CronJob): void {
    const callbacks = Reflect.get(job, '_callbacks') as Method[];
    if (callbacks.some((each) => this.#everywhere.has(each))) return;
    const declared = callbacks.map((each) => this.#declared.get(each)).find(Boolean);
    const cron = this.#gated.get(job) ??
      declared ?? { name: key, isDeclared: false, isGated: false };
    if (!cron.isDeclared) cron.name = this.#jobs.addName(key);
    if (cron.isGated) return; // the job was deleted and is added again
    cron.isGated = true;
    this.#gated.set(job, cron);
    const track = (callback: Method) => this.#jobs.tracked(cron, callback);
    if (!declared) Reflect.set(job, '_callbacks', callbacks.map(track));
    const add = job.addCallback.bind(job) as (callback: Method) => void;
    job.addCallback = (callback) => add(track(callback as Method));
    gateTicks(job, (due) => this.#clusterLink.leaderRole.owns(due));
  }
}

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

/**
 * Finds providers of @nestjs/schedule by class name, because some classes are not exported. There is
 * one provider for each call of `ScheduleModule.forRoot()`.
 */
function providersOf<T>(modules: ModulesContainer, className: string) {
  return [...modules.values()]
    .filter(({ metatype }) => metatype?.name === 'ScheduleModule')
    .flatMap(({ providers }) => [...providers.values()])
    .filter(({ metatype }) => metatype?.name === className)
    .map((provider) => provider as { metatype: { prototype: object }; instance: T | undefined });
}

type Wrapped = (this: unknown, ...args: never[]) => unknown;

/**
 * Wraps methods of this app's providers. A wrapper gets the original method and its arguments.
 *
 * @returns a function that restores the methods. `undefined` if the app has no such provider.
 */
function wrapMethods(
  modules: ModulesContainer,
  className: string,
  around: Readonly<Record<string, Wrapped>>,
): (() => void) | undefined {
  const ends = providersOf(modules, className).flatMap((provider) => {
    const prototype = provider.metatype.prototype as Record<string, Wrapped>;
    return Object.entries(around).map(([name, call]) => {
      const original = prototype[name]!;
      const wrapped: Wrapped = function (...args) {
        const bound = original.bind(this);
        if (this !== provider.instance) return bound(...args);
        return call(...([bound, ...args] as never[]));
      };
      prototype[name] = wrapped;
      return () => prototype[name] === wrapped && (prototype[name] = original);
    });
  });
  return ends.length === 0 ? undefined : () => ends.toReversed().forEach((end) => end());
}
