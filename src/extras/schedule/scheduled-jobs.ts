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
import { ClusterConfigurationError } from '../../errors/index.js';
import type { JobMetrics } from '../../metrics/job-metrics.js';
import { MetricsEndpoint } from '../../metrics/metrics.endpoint.js';
import { CLUSTER_LINK, type ClusterLink } from '../../snapshot/index.js';
import { LeaderJobs } from '../../worker/leader-jobs.js';
import { type CronJob, divertTicks, tickOwed } from './cron-ticks.js';
import { isForEveryWorker } from './every-worker.decorator.js';
import { wrapMethod } from './schedule-internals.js';

/** By the metadata of the decorators of @nestjs/schedule. */
const KINDS = { 1: 'cron', 2: 'timeout', 3: 'interval' } as const;

type Method = (...args: unknown[]) => unknown;

/** A method with `@Cron()`. */
interface DeclaredCron {
  readonly name: string;
  /** `early`: it was due before its job was registered. `settled`: its ticks are diverted, or for every worker. */
  state: 'declared' | 'early' | 'settled';
}

/** Has the jobs of @nestjs/schedule registered in every worker, and run in the leader. */
@Injectable()
export class ScheduledJobs implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  readonly #logger = new Logger('ClusterScheduleModule');
  readonly #jobs = new LeaderJobs(
    () => this.#clusterLink.leaderRole,
    (job, outcome) => this.#metrics?.count(job, outcome),
  );
  readonly #names = new Set<string>();
  /** Names of jobs that were added to the registry, by their keys in it. */
  readonly #added = new Map<string, string>();
  /** By what their timers call. */
  readonly #declared = new Map<unknown, DeclaredCron>();
  readonly #unwrap: readonly ((() => void) | undefined)[];
  #link: ClusterLink | undefined;
  #metrics: JobMetrics | undefined;
  /** Jobs that are not gated. */
  #everywhere = 0;

  constructor(
    @Inject(ModulesContainer) modules: ModulesContainer,
    @Inject(ModuleRef) private readonly moduleRef: ModuleRef,
  ) {
    // Before any hook of the app runs: from its first one on jobs may be added.
    this.#unwrap = [
      wrapMethod<[Method, object]>(
        modules,
        'ScheduleExplorer',
        'wrapFunctionInTryCatchBlocks',
        (wrap, method, instance) =>
          this.#wrap(method, instance, (of) => wrap(of, instance) as Method),
      ),
      wrapMethod<[string, CronJob]>(modules, 'SchedulerRegistry', 'addCronJob', (add, key, job) => {
        add(key, job);
        this.#gateCron(key, job);
      }),
      wrapMethod<[string]>(modules, 'SchedulerRegistry', 'deleteCronJob', (remove, key) => {
        remove(key);
        this.#forget(key);
      }),
    ];
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
    await this.#find<MetricsEndpoint>(MetricsEndpoint)?.extend(async (prefix) => {
      const { JobMetrics } = await import('../../metrics/job-metrics.js');
      this.#metrics = new JobMetrics(prefix);
      return { all: this.#metrics.all, labelled: [] };
    });
    this.#clusterLink.provideTasks(() => this.#jobs.isRunning);
    this.#clusterLink.leaderRole.follow((leading) => {
      this.#jobs.told(leading);
      // Nobody led before: once in the life of the cluster.
      if (leading.fresh && leading.since === undefined) setImmediate(() => this.#list());
    });
  }

  onApplicationShutdown(): void {
    for (const unwrap of this.#unwrap) unwrap?.();
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
  #wrap(method: Method, instance: object, wrap: (method: Method) => Method): unknown {
    const kind = KINDS[Reflect.getMetadata('SCHEDULER_TYPE', method) as keyof typeof KINDS];
    const name = this.#nameOf(`${instance.constructor.name}.${method.name}`);
    const isForAll = isForEveryWorker(method);
    if (isForAll) this.#everywhere += 1;
    const call = wrap(isForAll ? method : this.#tracked(name, method));
    if (kind !== 'cron') return isForAll ? call : this.#jobs.add({ name, kind, run: call });
    const cron: DeclaredCron = { name, state: isForAll ? 'settled' : 'declared' };
    // The constructor of its job calls it if a second ends meanwhile: see divertTicks().
    const onTick: Method = (...args) =>
      cron.state === 'settled' ? call(...args) : void (cron.state = 'early');
    this.#declared.set(onTick, cron);
    return onTick;
  }

  #gateCron(key: string, job: CronJob): void {
    const callbacks = Reflect.get(job, '_callbacks') as Method[];
    const declared = callbacks.map((each) => this.#declared.get(each)).find(Boolean);
    if (declared?.state === 'settled') return;
    if (declared !== undefined) {
      const isEarly = declared.state === 'early';
      declared.state = 'settled';
      return this.#divert(declared.name, job, isEarly);
    }
    const name = this.#nameOf(key);
    this.#added.set(key, name);
    const tracked = callbacks.map((each) => this.#tracked(name, each));
    Reflect.set(job, '_callbacks', tracked);
    this.#divert(name, job);
  }

  #divert(name: string, job: CronJob, isEarly = false): void {
    const run = job.fireOnTick.bind(job);
    const owed = (since: number, now: number) => tickOwed(job, since, now);
    divertTicks(job, this.#jobs.add({ name, kind: 'cron', run, owed }), isEarly);
  }

  #forget(key: string): void {
    const name = this.#added.get(key);
    if (name === undefined) return;
    this.#added.delete(key);
    this.#names.delete(name);
    this.#jobs.remove(name);
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
