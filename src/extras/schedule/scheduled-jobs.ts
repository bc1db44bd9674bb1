import {
  Inject,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { ModuleRef, ModulesContainer } from '@nestjs/core';
import { linkOfThisProcess } from '../../bootstrap/current-link.js';
import type { JobMetrics } from '../../metrics/job-metrics.js';
import { MetricsEndpoint } from '../../metrics/metrics.endpoint.js';
import { MODULE_OPTIONS, type ResolvedModuleOptions } from '../../options/module.js';
import { CLUSTER_LINK, type ClusterLink } from '../../snapshot/index.js';
import { LeaderJobs } from '../../worker/leader-jobs.js';
import { type CronJob, divertTicks, tickBefore, tickOwed } from './cron-ticks.js';
import { isForEveryWorker } from './every-worker.decorator.js';
import { internalOf, wrapMethod } from './schedule-internals.js';

/** By the metadata of the decorators of @nestjs/schedule. */
const KINDS = { 1: 'cron', 2: 'timeout', 3: 'interval' } as const;

type Method = (...args: unknown[]) => unknown;

/** Has the jobs of @nestjs/schedule registered in every worker, and run in the leader. */
@Injectable()
export class ScheduledJobs implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  readonly #logger = new Logger('ClusterScheduleModule');
  readonly #jobs: LeaderJobs;
  readonly #names = new Set<string>();
  /** Names of jobs that were added to the registry, by their keys in it. */
  readonly #added = new Map<string, string>();
  /** What the timers of methods with `@Cron()` call; `undefined` for those of every worker. */
  readonly #crons = new Map<unknown, string | undefined>();
  /** Names of those whose jobs are registered, and of those that were due before. */
  readonly #diverted = new Set<string>();
  readonly #early = new Set<string>();
  readonly #unwrap: (() => void)[] = [];
  #link: ClusterLink | undefined;
  #metrics: JobMetrics | undefined;
  #problem: unknown;
  /** Jobs that are not gated. */
  #everywhere = 0;

  constructor(
    @Inject(ModulesContainer) modules: ModulesContainer,
    @Inject(ModuleRef) private readonly moduleRef: ModuleRef,
  ) {
    this.#jobs = new LeaderJobs(
      () => this.#clusterLink.leaderRole,
      (job, outcome) => this.#metrics?.count(job, outcome),
    );
    try {
      // Before any hook of the app runs: from its first one on jobs may be added.
      const explorer = internalOf(modules, 'ScheduleExplorer');
      const registry = internalOf(modules, 'SchedulerRegistry');
      this.#unwrap.push(
        wrapMethod<[Method, object]>(
          explorer,
          'wrapFunctionInTryCatchBlocks',
          (wrap, [method, instance]) =>
            this.#wrap(method, instance, (of) => wrap(of as never, instance as never)),
        ),
        wrapMethod<[string, CronJob]>(registry, 'addCronJob', (add, [name, job]) => {
          add(name as never, job as never);
          this.#gateCron(name, job);
        }),
        wrapMethod<[string]>(registry, 'deleteCronJob', (remove, [name]) => {
          remove(name as never);
          this.#forget(name);
        }),
      );
    } catch (error) {
      this.#problem = error;
    }
  }

  /** @throws ClusterConfigurationError without `ScheduleModule`. */
  async onModuleInit(): Promise<void> {
    if (this.#problem === undefined) return;
    await this.#clusterLink.reportBootFailure(this.#problem);
    throw this.#problem;
  }

  async onApplicationBootstrap(): Promise<void> {
    const options = this.#find<ResolvedModuleOptions>(MODULE_OPTIONS);
    const endpoint = this.#find<MetricsEndpoint>(MetricsEndpoint);
    if (options && options.metrics !== false && endpoint !== undefined) {
      const { JobMetrics } = await import('../../metrics/job-metrics.js');
      this.#metrics = new JobMetrics(options.metrics.prefix);
      endpoint.include(this.#metrics.all, []);
    }
    this.#clusterLink.provideTasks(() => this.#jobs.isRunning);
    this.#clusterLink.leaderRole.follow((leading) => {
      this.#jobs.told(leading);
      // Nobody led before: once in the life of the cluster.
      if (leading.fresh && leading.since === undefined) setImmediate(() => this.#list());
    });
  }

  onApplicationShutdown(): void {
    for (const unwrap of this.#unwrap) unwrap();
  }

  get #clusterLink(): ClusterLink {
    return (this.#link ??= this.#find<ClusterLink>(CLUSTER_LINK) ?? linkOfThisProcess());
  }

  #list(): void {
    const { names } = this.#jobs;
    const jobs = names.length === 1 ? '1 scheduled job runs' : `${names.length} scheduled jobs run`;
    this.#logger.log(
      `${jobs} in one worker, the leader: ${names.join(', ') || 'none'}` +
        (this.#everywhere > 0 ? `; ${this.#everywhere} run in every worker` : ''),
    );
  }

  /** @param wrap @nestjs/schedule's own: logs what a method throws. */
  #wrap(method: Method, instance: object, wrap: (method: Method) => unknown): unknown {
    const kind = KINDS[Reflect.getMetadata('SCHEDULER_TYPE', method) as keyof typeof KINDS];
    if (isForEveryWorker(method) || kind === undefined) {
      const call = wrap(method);
      this.#everywhere += 1;
      if (kind === 'cron') this.#crons.set(call, undefined);
      return call;
    }
    const name = this.#nameOf(`${instance.constructor.name}.${method.name}`);
    const call = wrap(this.#tracked(name, method)) as Method;
    if (kind === 'cron') {
      // The constructor of its job calls it if a second ends meanwhile: see tickBefore().
      const ifDiverted: Method = (...args) =>
        this.#diverted.has(name) ? call(...args) : void this.#early.add(name);
      this.#crons.set(ifDiverted, name);
      return ifDiverted;
    }
    const fire = this.#jobs.add({ name, kind, run: call });
    return () => fire();
  }

  #gateCron(key: string, job: CronJob): void {
    const callbacks = job._callbacks ?? [];
    const declared = callbacks.find((callback) => this.#crons.has(callback));
    if (declared !== undefined) {
      const name = this.#crons.get(declared);
      if (name === undefined) return;
      const tick = this.#divert(name, job);
      this.#diverted.add(name);
      if (this.#early.delete(name)) tick(tickBefore(job));
      return;
    }
    const name = this.#nameOf(key);
    this.#added.set(key, name);
    for (const [index, callback] of callbacks.entries()) {
      callbacks[index] = this.#tracked(name, callback);
    }
    this.#divert(name, job);
  }

  #forget(key: string): void {
    const name = this.#added.get(key);
    if (name === undefined) return;
    this.#added.delete(key);
    this.#names.delete(name);
    this.#jobs.remove(name);
  }

  #divert(name: string, job: CronJob): (due: number) => unknown {
    const owed = (since: number, now: number) => tickOwed(job, since, now);
    const tick = this.#jobs.add({ name, kind: 'cron', run: job.fireOnTick, owed });
    divertTicks(job, tick);
    return tick;
  }

  #tracked(name: string, method: Method): Method {
    const jobs = this.#jobs;
    return function (this: unknown, ...args) {
      return jobs.track(name, () => method.apply(this, args));
    };
  }

  /** The same in every worker: they find the same in the same order. */
  #nameOf(name: string): string {
    let free = name;
    for (let count = 2; this.#names.has(free); count += 1) free = `${name}#${count}`;
    this.#names.add(free);
    return free;
  }

  #find<T>(token: unknown): T | undefined {
    try {
      return this.moduleRef.get<T>(token as string, { strict: false });
    } catch {
      return undefined; // the app has no ClusterModule
    }
  }
}
