import { Inject, Injectable, Logger, Optional } from '@nestjs/common';
import { isMainThread } from 'node:worker_threads';
import { type Metrics, CLUSTER_LINK, type ClusterLink } from '../contract/snapshot/index.js';
import { ClusterConfigurationError, OnceAMinute, onceEach } from '../contract/errors/index.js';
import { availableCores } from '../contract/process/machine.js';
import { COMMON_JS } from '../contract/options/common-js.js';
import type { FindingName } from '../contract/options/log.js';
import { MODULE_OPTIONS, type ResolvedModuleOptions } from '../contract/options/module.js';
import { appImport } from '../contract/snapshot/app-import.js';
import { definitionsOf } from './cpu-bound.decorator.js';
import { type Found, OffloadExplorer } from './offload.explorer.js';
import type { OffloadMetrics } from './offload.metrics.js';
import { mainFile, refusalOfModule } from './refusals.js';
import { InlineRunner } from './run/inline-runner.js';
import { REMOTE_RUNNER, refusalsOfQueues, type RemoteRunner } from './run/remote-runner.js';
import {
  type OffloadSnapshot,
  type Runner,
  type Task,
  type TaskObserver,
  UNOBSERVED,
} from './run/runner.interface.js';
import { WaitingClient } from './run/waiting-client.js';
import { describeError, restoreError } from './task/task-error.js';
import { currentTrace } from './task/trace-context.js';
import type { ThreadPlan } from './thread/plan.js';
import { reasonOf } from './thread/problem.js';

/** Injection token of the path of the file with `offload.module`, which threads import. */
export const MODULE_ORIGIN = Symbol('nestjs-cluster.module-origin');

/** Maximum wait for a thread, in ms. A later answer is of little use to a client, and a burst of this length passes without a 503. */
const QUEUE_TIMEOUT_MS = 5_000;

/** Maximum number of threads per core without a warning. More threads only take memory and slow each other's start. */
const MAX_THREADS_PER_CORE = 4;

const IN_VITEST =
  'ClusterModule: @CpuBound() methods run on the event loop, because this is a test of Vitest; set CLUSTER_OFFLOAD=inline to confirm it, or CLUSTER_OFFLOAD=threads for threads';

/** Offloads the `@CpuBound()` methods of an app while the app runs. */
@Injectable()
export class Offload {
  readonly #logger = new Logger('ClusterModule');
  readonly #losses = new OnceAMinute((line) => this.#logger.error(line));
  readonly #deaths = new OnceAMinute((line) => this.#logger.warn(line));
  /** Every worker has the same warning, so the primary logs it once. Without a primary it is logged here. */
  readonly #warn = onceEach((message: string, name?: FindingName) => {
    if (this.link.bootstrapped) this.link.warn(message, name);
    else this.#logger.warn(message);
  });
  #started = false;
  #runner: Runner | undefined;
  #client: WaitingClient | undefined;
  #metrics: OffloadMetrics | undefined;

  constructor(
    @Inject(MODULE_OPTIONS) private readonly options: ResolvedModuleOptions,
    @Inject(MODULE_ORIGIN) private readonly moduleOrigin: string | undefined,
    @Inject(CLUSTER_LINK) private readonly link: ClusterLink,
    @Inject(OffloadExplorer) private readonly explorer: OffloadExplorer,
    @Optional() @Inject(REMOTE_RUNNER) private readonly remote?: RemoteRunner,
  ) {}

  /**
   * Finds the methods and offloads them. Threads start when they are needed. Whether they can load
   * the tasks is checked once the process serves, or now if nothing triggers that check later. In a
   * thread nothing is offloaded: methods run directly.
   *
   * @returns true at the first call, if there are methods to offload.
   * @throws ClusterConfigurationError that names all methods that cannot be offloaded.
   */
  async start(): Promise<boolean> {
    if (!isMainThread || this.#started) return false;
    this.#started = true;
    const { module, mode } = this.options.offload;
    const situation = {
      hasModule: module !== undefined,
      threads: !COMMON_JS && mode === 'threads',
      mainFile: this.link.bootstrapped ? undefined : mainFile(),
    };
    const { found, ...explored } = this.explorer.explore(situation);
    const refusals = [...explored.refusals, ...refusalsOfQueues(found, this.remote)];
    if (situation.threads && found.length + refusals.length > 0) {
      const { missingThreadProgram } = await import('./thread/thread-program.js');
      refuse(missingThreadProgram());
    }
    const misplaced = module && refusalOfModule(module.name, this.moduleOrigin, situation);
    if (misplaced !== undefined && found.length > 0) refuse([...refusals, misplaced]);
    if (found.length === 0) {
      refuse(refusals);
      return false;
    }
    // Each method once, with the first of its instances.
    const definitions = [...new Set(found.map(({ definition }) => definition))];
    const methods = definitions.map((own) => found.find(({ definition }) => definition === own)!);
    const tasks = methods.map((method, index) => this.#taskOf(method, index));
    const runner = await this.#startRunner(methods, tasks, refusals);
    this.#runner = runner;
    const client = new WaitingClient(this.link);
    this.#client = client;
    await this.remote?.start({
      tasks: tasks.filter(({ queue }) => queue !== undefined),
      find: (type, name) => {
        const own = definitionsOf(type.prototype as object).find(({ method }) => method === name);
        return tasks[methods.findIndex(({ definition }) => definition === own)];
      },
      local: runner,
      threads: runner.size,
      currentTrace,
      describeError,
      restoreError,
    });
    this.link.provideTasks((before) => runner.hasCallFrom(before));
    for (const { instance, definition } of found) {
      const task = tasks[methods.findIndex((each) => each.definition === definition)]!;
      const submitter = task.queue === undefined ? runner : this.remote!;
      definition.offloaded.set(instance, (args) => client.call(submitter, task, args));
    }
    return true;
  }

  /** Metrics for the registry of this process; empty if nothing is offloaded or measured. */
  get metrics(): Metrics {
    const { all = [], labelled = [] } = this.#metrics ?? {};
    return { all, labelled };
  }

  snapshot(): OffloadSnapshot {
    return this.#runner?.snapshot() ?? { threads: 0, running: 0, queueSize: 0 };
  }

  /** Ends running calls and the threads. */
  async close(): Promise<void> {
    await this.remote?.close();
    await this.#runner?.close();
    this.#client?.close();
  }

  async #startRunner(
    methods: readonly Found[],
    tasks: readonly Task[],
    refusals: readonly string[],
  ): Promise<Runner> {
    const { offload } = this.options;
    const threads =
      offload.threads === 'auto'
        ? threadsFor(availableCores(), this.link.workers, this.link.identity.slot)
        : offload.threads;
    if (threads > MAX_THREADS_PER_CORE * availableCores()) {
      this.#warn(
        `${threads} threads on ${availableCores()} cores: more than one or two for each core compute no faster, and take long to start; lower offload.threads or CLUSTER_THREADS`,
        'cpu-bound-threads',
      );
    }
    const observer = await this.#observe(tasks);
    const call = (task: number, args: unknown[]): unknown => {
      const { definition, instance } = methods[task]!;
      return definition.body.apply(instance, args);
    };
    if (COMMON_JS || offload.mode !== 'threads') {
      refuse(refusals);
      // Nest's own logger in tests drops everything but errors.
      if (offload.mode === 'vitest') console.info(IN_VITEST);
      return new InlineRunner(threads, call, observer);
    }
    const { ThreadPool } = await import('./run/thread-pool.js');
    const { minThreads, maxQueue } = offload;
    const pool = new ThreadPool(
      this.#planOf(methods),
      { threads, minThreads: Math.min(minThreads, threads), maxQueue },
      observer,
      {
        lost: ({ name }, error) => {
          const reason = reasonOf(error);
          this.#losses.say(`the thread of ${name} was lost: ${reason}`, name);
        },
        died: (error) => this.#deaths.say(`a thread died: ${String(error)}`, 'death'),
        lostClass: ({ name }, type) => this.#warn(lostClass(name, type)),
      },
    );
    const verify = async (): Promise<void> => refuse([...refusals, ...(await pool.check())]);
    const keep = (): void => pool.keep();
    const utilization = (): number => pool.utilization();
    // If something is wrong already, the problems that only a thread finds are reported with it.
    if (refusals.length > 0 || !this.link.provideThreads({ verify, keep, utilization })) {
      await verify();
      keep();
    }
    return pool;
  }

  #taskOf({ name, definition: { options } }: Found, index: number): Task {
    return {
      name,
      index,
      timeoutMs: options.timeoutMs ?? this.options.offload.timeoutMs,
      queueTimeoutMs: QUEUE_TIMEOUT_MS,
      abortOnDisconnect: options.abortOnDisconnect ?? false,
      queue: options.queue,
    };
  }

  #planOf(methods: readonly Found[]): ThreadPlan {
    const { module } = this.options.offload;
    const main = this.link.bootstrapped ? mainFile() : undefined;
    return {
      tasks: methods.map(({ name, definition: { owner, file }, injected }) => ({
        name,
        file: file!,
        className: owner.constructor.name,
        injected,
      })),
      module: module && { name: module.name, file: this.moduleOrigin },
      main: main === undefined ? undefined : { file: main, importsApp: appImport() !== undefined },
    };
  }

  async #observe(tasks: readonly Task[]): Promise<TaskObserver> {
    const { metrics } = this.options;
    if (metrics === false) return UNOBSERVED;
    const [{ loadPrometheusClients }, { OffloadMetrics }] = await Promise.all([
      import('../contract/options/peers.js'),
      import('./offload.metrics.js'),
    ]);
    const [client] = await loadPrometheusClients();
    const { slot } = this.link.identity;
    this.#metrics = new OffloadMetrics(client!, slot, tasks, () => this.snapshot());
    return this.#metrics;
  }
}

/** The number of threads of a slot: the cores divided by the workers. The first slots get the remainder. */
export function threadsFor(cores: number, workers: number, slot: number): number {
  return Math.max(1, Math.floor(cores / workers) + (slot < cores % workers ? 1 : 0));
}

function lostClass(task: string, className: string): string {
  return `${task} returned an instance of ${className}, which arrives as a plain object, so that interceptors such as ClassSerializerInterceptor do not see its class; return plain data, or build the instance in the caller`;
}

function refuse(problems: readonly string[]): void {
  if (problems.length === 0) return;
  throw new ClusterConfigurationError(`@CpuBound() cannot work here: ${problems.join(' | ')}`);
}
