import {
  Inject,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { ModuleRef, ModulesContainer } from '@nestjs/core';
import type { SchedulerRegistry } from '@nestjs/schedule';
import { ClusterConfigurationError } from '../../contract/errors/index.js';
import { MetricsEndpoint } from '../../observe/metrics/metrics.endpoint.js';
import type { ClusterLink } from '../../contract/snapshot/cluster-link.js';
import { CLUSTER_LINK, currentLink } from '../../contract/snapshot/current-link.js';
import { ProcessLink } from '../../worker/link/process-link.js';
import { type CronJob, divertTicks } from './cron-ticks.js';
import { isForEveryWorker } from './every-worker.decorator.js';
import type { JobMetrics } from './job-metrics.js';
import { LeaderJobs } from './leader-jobs.js';
import { providersOf, wrapMethods } from './schedule-internals.js';

/** The kinds of jobs, by the value that the decorators of @nestjs/schedule set as metadata. */
const KINDS = { 1: 'cron', 2: 'timeout', 3: 'interval' } as const;

type Method = (...args: unknown[]) => unknown;
type Wrap = (method: Method, instance: object) => Method;

/** A cron job that was declared by a decorator or that the app added to the registry. */
interface Cron {
  /** The name of the job. It changes if the job is deleted and added again under another name. */
  name: string;
  /** An `early` job was due before it was registered. An `everywhere` job runs in all workers. */
  state: 'declared' | 'early' | 'everywhere' | 'added' | 'registered' | 'deleted';
  run?: () => unknown;
  /** The function that the job's timer calls. */
  tick?: (due?: number) => unknown;
}

/** Finds the jobs of @nestjs/schedule in every worker, and lets them run in the leader. */
@Injectable()
export class ScheduledJobs implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  readonly #logger = new Logger('ClusterScheduleModule');
  /** Set at the app's start if the app has metrics. */
  #metrics: JobMetrics | undefined;
  readonly #jobs = new LeaderJobs(
    () => this.#clusterLink.leaderRole,
    (job, outcome) => this.#metrics?.count(job, outcome),
  );
  /** The declared cron jobs, by the function that was given to the package cron. */
  readonly #declared = new Map<unknown, Cron>();
  readonly #gated = new WeakMap<CronJob, Cron>();
  readonly #unwrap: readonly ((() => void) | undefined)[];
  #link: ClusterLink | undefined;
  /** How many jobs run in every worker. */
  #everywhere = 0;

  constructor(
    @Inject(ModulesContainer) modules: ModulesContainer,
    @Inject(ModuleRef) private readonly moduleRef: ModuleRef,
  ) {
    // Wraps in the constructor, because hooks of the app may add jobs.
    this.#unwrap = [
      wrapMethods(modules, 'ScheduleExplorer', {
        wrapFunctionInTryCatchBlocks: (_, wrap: Wrap, method: Method, of: object) =>
          this.#wrap(method, of, (each) => wrap(each, of)),
      }),
      wrapMethods(modules, 'SchedulerRegistry', {
        addCronJob: (_, add: SchedulerRegistry['addCronJob'], key: string, job: CronJob) => {
          add(key, job);
          this.#gateCron(key, job);
        },
        deleteCronJob: (registry: SchedulerRegistry, remove: Method, key: string) => {
          const cron = this.#gated.get(registry.getCronJobs().get(key)!);
          remove(key);
          if (cron === undefined) return;
          cron.state = 'deleted';
          this.#jobs.remove(cron.name);
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
    await this.#provided<MetricsEndpoint>(MetricsEndpoint)?.extend(async (client) => {
      const { JobMetrics } = await import('./job-metrics.js');
      this.#metrics = new JobMetrics(client);
      return { all: this.#metrics.all };
    });
    this.#clusterLink.provideTasks(() => this.#jobs.isRunning);
    this.#clusterLink.leaderRole.follow((leading) => {
      this.#jobs.told(leading);
      if (!leading.isFirst) return;
      setImmediate(() => this.#logger.log(this.#jobs.summary(this.#everywhere)));
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
    const kind = KINDS[Reflect.getMetadata('SCHEDULER_TYPE', method) as keyof typeof KINDS];
    const name = this.#jobs.freeName(`${instance.constructor.name}.${method.name}`);
    const isForAll = isForEveryWorker(method);
    if (isForAll) this.#everywhere += 1;
    const cron: Cron = { name, state: isForAll ? 'everywhere' : 'declared' };
    const call = wrap(isForAll ? method : this.#jobs.tracked(cron, method));
    if (kind !== 'cron') return isForAll ? call : this.#jobs.add({ name, kind, run: call });
    // The cron job's constructor calls `onTick` if a second ends at that moment, see divertTicks().
    const onTick: Method = (...args) =>
      cron.state === 'declared' || cron.state === 'early'
        ? void (cron.state = 'early')
        : call(...args);
    this.#declared.set(onTick, cron);
    return onTick;
  }

  #gateCron(key: string, job: CronJob): void {
    const callbacks = Reflect.get(job, '_callbacks') as Method[];
    const declared = callbacks.map((each) => this.#declared.get(each)).find(Boolean);
    const cron = this.#gated.get(job) ?? declared ?? { name: key, state: 'added' };
    const { state } = cron;
    if (state === 'everywhere' || state === 'registered') return;
    cron.state = 'registered';
    cron.name = this.#jobs.freeName(declared ? cron.name : key);
    // If the job was deleted and is added again, it is wrapped already.
    const run = (cron.run ??= job.fireOnTick.bind(job));
    cron.tick = this.#jobs.add({ name: cron.name, kind: 'cron', run });
    if (state === 'deleted') return;
    this.#gated.set(job, cron);
    const track = (callback: Method) => this.#jobs.tracked(cron, callback);
    if (!declared) Reflect.set(job, '_callbacks', callbacks.map(track));
    const add = job.addCallback.bind(job) as (callback: Method) => void;
    job.addCallback = (callback) => add(track(callback as Method));
    divertTicks(job, (due) => cron.tick!(due), state === 'early');
  }
}
