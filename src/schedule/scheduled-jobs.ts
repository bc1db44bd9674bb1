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
import { type CronJob, gateTicks } from './cron-gate.js';
import { JobMetrics, LeaderJobs } from './leader-jobs.js';

// A registered symbol, so that two copies of this package in one process use the same key.
const EVERY_WORKER = Symbol.for('nestjs-cluster.every-worker');

/**
 * Runs a method that has `@Cron()`, `@Interval()` or `@Timeout()` in every worker, as Nest does
 * without `ClusterScheduleModule`. Use this for work on the process itself, for example to clear its cache.
 */
export function EveryWorker(): MethodDecorator {
  return SetMetadata(EVERY_WORKER, true);
}

/** The kinds of jobs, by the value that the decorators of @nestjs/schedule set as metadata. */
const KINDS = { 1: 'cron', 2: 'timeout', 3: 'interval' } as const;

type Method = (...args: unknown[]) => unknown;
type Wrap = (method: Method, instance: object) => Method;

/** A cron job of a decorator, or one that the app adds to the registry. */
interface Cron {
  name: string;
  readonly isDeclared: boolean;
  isGated: boolean;
}

/** Finds the jobs of @nestjs/schedule in every worker, and lets them run in the leader. */
@Injectable()
export class ScheduledJobs implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  readonly #logger = new Logger('ClusterScheduleModule');
  readonly #jobs = new LeaderJobs(() => this.#clusterLink.leaderRole);
  /** The declared cron jobs, by the function that was given to the package cron. */
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
    // Wraps in the constructor, because hooks of the app may add jobs.
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
    // Handles the jobs that earlier constructors have added, if the registry exists already.
    for (const { instance } of providersOf<SchedulerRegistry>(modules, 'SchedulerRegistry'))
      for (const [key, job] of instance?.getCronJobs() ?? []) this.#gateCron(key, job);
  }

  /** @throws ClusterConfigurationError without `ScheduleModule`. */
  async onModuleInit(): Promise<void> {
    if (this.#unwrap.every((unwrap) => unwrap !== undefined)) return;
    const error = new ClusterConfigurationError(
      'ClusterScheduleModule found no ScheduleModule of @nestjs/schedule; add ScheduleModule.forRoot() to the imports, of @nestjs/schedule 6 or 12',
    );
    await this.#clusterLink.reportBootFailure(error);
    throw error;
  }

  async onApplicationBootstrap(): Promise<void> {
    await this.#provided<MetricsEndpoint>(MetricsEndpoint)?.extend(
      (client) => (this.#jobs.metrics = new JobMetrics(client)),
    );
    this.#clusterLink.provideTasks(() => this.#jobs.isRunning);
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

  /** A provider of any module of the app, or `undefined`, for example without `ClusterModule`. */
  #provided<T>(token: unknown): T | undefined {
    try {
      return this.moduleRef.get<T>(token as string, { strict: false });
    } catch {
      return undefined;
    }
  }

  /** @param wrap the wrapper of @nestjs/schedule, which logs the errors of a method. */
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
    // The constructor of a cron job may call `onTick`, if a second ends at that moment. The app still starts then.
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
 * Finds providers of @nestjs/schedule by the name of their class, because some classes are not
 * exported. Each `ScheduleModule.forRoot()` of the app has its own provider for the whole app.
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
 * Wraps methods of this app's providers. A wrapper gets the original method and the arguments.
 *
 * @returns a function that restores the methods, or `undefined` if the app has no such provider.
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
