import { Inject, Injectable, Logger, Optional } from '@nestjs/common';
import type { ServerResponse } from 'node:http';
import { isMainThread } from 'node:worker_threads';
import { realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Metrics, CLUSTER_LINK, type ClusterLink } from '../contract/snapshot/types.js';
import { ClusterConfigurationError, OnceAMinute, onceEach } from '../contract/errors/errors.js';
import { availableCores } from '../contract/process/machine.js';
import { COMMON_JS } from '../contract/options/common-js.js';
import type { FindingName } from '../contract/options/log.js';
import { MODULE_OPTIONS, type ResolvedModuleOptions } from '../contract/options/module.js';
import { appImport } from '../contract/snapshot/app-import.js';
import { type CpuBoundDefinition, definitionsOf } from './cpu-bound.decorator.js';
import { TaskRejectedException } from './offload.exceptions.js';
import {
  type Found,
  OffloadExplorer,
  refusalOfModule,
  refusalsOfQueues,
} from './offload.explorer.js';
import type { OffloadMetrics, OffloadSnapshot } from './offload.metrics.js';
import { Calls } from './run/calls.js';
import { REMOTE_RUNNER, type RemoteRunner } from './run/remote-runner.js';
import type { Runner, Submitter, Task, TaskOutcome, Watch } from './run/runner.interface.js';
import { buffersIn, cloneOf, restoreBuffers, resultOf, runBody } from './task/run-body.js';
import { describeError, restoreError } from './task/task-error.js';
import { currentTrace } from './task/trace-context.js';
import { reasonOf } from './thread/problem.js';
import type { ThreadPlan } from './thread/thread-host.js';

/** Injection token for the path of the file that passes `offload.module` to `forRoot()`. Threads import it. */
export const MODULE_ORIGIN = Symbol('nestjs-cluster.module-origin');

/** Maximum wait for a thread. Short bursts pass without a 503, and a client would not wait much longer. */
const QUEUE_TIMEOUT_MS = 5_000;

/** Maximum number of threads per core without a warning. More threads only use memory and start slowly. */
const MAX_THREADS_PER_CORE = 4;

const IN_VITEST =
  'ClusterModule: @CpuBound() methods run on the event loop, because this is a Vitest run; set CLUSTER_OFFLOAD=inline to hide this line, or CLUSTER_OFFLOAD=threads to use threads';

/** Offloads the `@CpuBound()` methods of an app. */
@Injectable()
export class Offload {
  readonly #logger = new Logger('ClusterModule');
  readonly #losses = new OnceAMinute((line) => this.#logger.error(line));
  readonly #deaths = new OnceAMinute((line) => this.#logger.warn(line));
  /** All workers have the same warning, so the primary logs it once. Without a primary, it is logged here. */
  readonly #warn = onceEach((message: string, name?: FindingName) => {
    if (this.link.bootstrapped) this.link.warn(message, name);
    else this.#logger.warn(message);
  });
  #started = false;
  #runner: Runner | undefined;
  #calls = new Calls();
  #metrics: OffloadMetrics | undefined;

  constructor(
    @Inject(MODULE_OPTIONS) private readonly options: ResolvedModuleOptions,
    @Inject(MODULE_ORIGIN) private readonly moduleOrigin: string | undefined,
    @Inject(CLUSTER_LINK) private readonly link: ClusterLink,
    @Inject(OffloadExplorer) private readonly explorer: OffloadExplorer,
    @Optional() @Inject(REMOTE_RUNNER) private readonly remote?: RemoteRunner,
  ) {}

  /**
   * Finds the methods and offloads them. Threads start on demand. The primary later asks whether
   * threads can load the tasks. Without a primary, this is checked now. In a thread, methods run
   * directly.
   *
   * @returns `true` for the first call, if there are methods to offload.
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
      const { missingThreadProgram } = await import('./run/thread-pool.js');
      refuse(missingThreadProgram());
    }
    const misplaced = module && refusalOfModule(module.name, this.moduleOrigin, situation);
    if (misplaced !== undefined && found.length > 0) refuse([...refusals, misplaced]);
    if (found.length === 0) {
      refuse(refusals);
      return false;
    }
    // If a class has several instances, uses the first.
    const methods = found.filter(({ definition }, index) => indexIn(found, definition) === index);
    const tasks = methods.map((method, index) => this.#taskOf(method, index));
    const taskOf = (definition: CpuBoundDefinition | undefined) =>
      tasks[indexIn(methods, definition)];
    this.#calls = new Calls(await this.#measure(tasks));
    const threads = this.#maxThreads();
    const runner = await this.#startRunner(methods, threads, refusals);
    this.#runner = runner;
    // Only in apps with `@CpuBound()` methods, because on Node 20 any use of AsyncLocalStorage lowers the
    // throughput of light requests by up to a sixth.
    this.link.followScopes(true);
    await this.remote?.start({
      tasks: tasks.filter(({ queue }) => queue !== undefined),
      find: (type, name) =>
        taskOf(definitionsOf(type.prototype as object).find(({ method }) => method === name)),
      local: runner,
      threads,
      currentTrace,
      describeError,
      restoreError,
    });
    this.link.onDrainTasks((before) => this.#calls.hasCallBefore(before));
    for (const { instance, definition } of found) {
      const task = taskOf(definition)!;
      const submitter = task.queue === undefined ? runner : this.remote!;
      definition.offloaded.set(instance, (args) => this.#call(submitter, task, args));
    }
    return true;
  }

  /** Metrics for the registry of this process. Empty if there are no methods or no metrics. */
  get metrics(): Metrics {
    const { all = [], labelled = [] } = this.#metrics ?? {};
    return { all, labelled };
  }

  snapshot(): OffloadSnapshot {
    const { running, size } = this.#calls;
    return { threads: this.#runner?.threads ?? 0, running, queueSize: size - running };
  }

  /** Aborts running calls and terminates the threads. */
  async close(): Promise<void> {
    await this.remote?.close();
    await this.#runner?.close();
    if (this.#runner !== undefined) this.link.followScopes(false);
  }

  /** Makes a call for the client of the current request. The async context identifies the request. */
  async #call(submitter: Submitter, task: Task, args: unknown[]): Promise<unknown> {
    const response = this.link.scope?.waiting;
    const watch: Watch | undefined = response && ((gone) => this.link.watchClient(response, gone));
    try {
      return await submitter.submit(task, args, currentTrace(), watch);
    } catch (error) {
      if (error instanceof TaskRejectedException && response !== undefined) {
        adviseRetry(response, error.retryAfterSeconds);
      }
      throw error;
    }
  }

  #maxThreads(): number {
    const { threads } = this.options.offload;
    const { workers, identity } = this.link;
    const cores = availableCores();
    if (threads === 'auto') return threadsFor(cores, workers, identity.slot);
    if (threads > MAX_THREADS_PER_CORE * cores) {
      this.#warn(
        `too many threads are configured: ${threads} threads on ${cores} cores start slowly and compute no faster than one or two per core; lower offload.threads or CLUSTER_THREADS`,
        'cpu-bound-threads',
      );
    }
    return threads;
  }

  async #startRunner(
    methods: readonly Found[],
    threads: number,
    refusals: readonly string[],
  ): Promise<Runner> {
    const { mode, minThreads, maxQueue } = this.options.offload;
    if (COMMON_JS || mode !== 'threads') {
      refuse(refusals);
      // Not Nest's logger, because in tests it prints only errors.
      if (mode === 'vitest') console.info(IN_VITEST);
      return inlineRunner(methods, this.#calls);
    }
    const { ThreadPool } = await import('./run/thread-pool.js');
    const pool = new ThreadPool(
      this.#planOf(methods),
      { threads, minThreads: Math.min(minThreads, threads), maxQueue },
      this.#calls,
      {
        lost: ({ name }, error) =>
          this.#losses.say(`the thread running ${name} died: ${reasonOf(error)}`, name),
        died: (error) => this.#deaths.say(`a thread died: ${String(error)}`, 'death'),
        lostClass: ({ name }, type) => this.#warn(lostClass(name, type)),
      },
    );
    const verify = async (): Promise<void> => refuse([...refusals, ...(await pool.check())]);
    const keep = (): void => pool.keep();
    const utilization = (): number => this.#calls.utilization(threads);
    // If startup fails anyway, the message also lists the problems that only a thread can find.
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

  async #measure(tasks: readonly Task[]): Promise<OffloadMetrics | undefined> {
    if (this.options.metrics === false) return undefined;
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

function indexIn(methods: readonly Found[], definition: CpuBoundDefinition | undefined): number {
  return methods.findIndex((each) => each.definition === definition);
}

/** Runs calls on the event loop, where they cannot be terminated. Copies arguments and results, as a thread would. */
function inlineRunner(methods: readonly Found[], calls: Calls): Runner {
  return {
    threads: 0,
    async submit(task, args, trace) {
      const { name, index } = task;
      const { definition, instance } = methods[index]!;
      const call = calls.add(task);
      calls.begin(call);
      let outcome: TaskOutcome = 'failed';
      try {
        const given = restoreBuffers(cloneOf(name, [...args]), buffersIn(args));
        const result = await runBody(name, () => definition.body.apply(instance, given), trace);
        const value = resultOf(
          result.ok ? { ...result, value: cloneOf(name, result.value) } : result,
        );
        outcome = 'completed';
        return value;
      } finally {
        calls.remove(call, outcome);
      }
    },
    async close() {},
  };
}

/** The resolved path of the main file, as Node imported it. */
function mainFile(): string | undefined {
  try {
    // resolve() also handles `node dist/main` and `node dist`.
    return realpathSync(createRequire(import.meta.url).resolve(process.argv[1]!));
  } catch {
    return undefined; // code from standard input or `node --eval`
  }
}

/**
 * Adds `Retry-After` to a 503 response, because Nest's exceptions have no headers. If an exception
 * filter responds with another status, the header is not sent.
 */
function adviseRetry(response: ServerResponse, seconds: number): void {
  const writeHead = response.writeHead.bind(response) as (...args: unknown[]) => ServerResponse;
  response.writeHead = (status: number, ...rest: unknown[]): ServerResponse => {
    if (status === 503 && !response.hasHeader('Retry-After')) {
      response.setHeader('Retry-After', String(seconds));
    }
    return writeHead(status, ...rest);
  };
}

/** The number of threads of a slot. The workers share the cores equally. The first slots get the remainder. */
export function threadsFor(cores: number, workers: number, slot: number): number {
  return Math.max(1, Math.floor(cores / workers) + (slot < cores % workers ? 1 : 0));
}

function lostClass(task: string, className: string): string {
  return `${task} returned an instance of ${className}, which arrives as a plain object, so interceptors such as ClassSerializerInterceptor cannot recognise it; return plain data, or create the instance in the caller`;
}

function refuse(problems: readonly string[]): void {
  if (problems.length === 0) return;
  throw new ClusterConfigurationError(`@CpuBound() cannot work here: ${problems.join(' | ')}`);
}
