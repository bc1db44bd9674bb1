import type { INestApplicationContext } from '@nestjs/common';
import { pathToFileURL } from 'node:url';
import { endTelemetry } from '../../contract/process/telemetry.js';
import { startTracing } from '../tracing/start-tracing.js';
import { type CpuBoundDefinition, functionNameOf, ownDefinitions } from '../cpu-bound.metadata.js';
import { contentsOf, type Place, restoreBuffers } from '../task/parcel.js';
import { runBody } from '../task/run-body.js';
import type { RunRequest } from '../task/runner.interface.js';
import type { TracedTask } from '../task/trace-context.js';
import { type Claim, isFirstToClaim } from './claim.js';
import { instancesOf, moduleGivenTo } from './module-in-thread.js';
import type { PlannedTask, ThreadPlan } from './plan.js';
import { describeProblems, type Problem, reasonOf } from './problem.js';
import { Turns } from './turns.js';

/** A call on its way to a thread. */
export interface SentRequest extends RunRequest {
  /** Which of the arguments were Buffers. */
  readonly buffers: readonly Place[];
  /** Set if another call ran when this one was sent: it may be taken back. */
  readonly claim?: Claim;
}

/** What is asked of a thread. */
export type ThreadMessage =
  /** Answered by a `RunResult`, or by `undefined` for a call that was taken back. */
  | ({ readonly type: 'run' } & SentRequest)
  /** Can you run every task? Answered by a {@link ThreadReport}. */
  | { readonly type: 'check' }
  /** You will be ended: let go of what you hold. */
  | { readonly type: 'close' };

/** A thread's report of itself. */
export interface ThreadReport {
  /** The problem that keeps it from running any task. */
  readonly problems: readonly Problem[];
}

/** For an SDK that runs in the thread, after its module. */
const TELEMETRY_MS = 500;

type Constructor = new () => object;

/** Nest's own default. */
const LOG_LEVELS = ['verbose', 'debug', 'log', 'warn', 'error', 'fatal'] as const;

/** A task that can be called, or why it cannot. */
type Loaded =
  | {
      readonly definition: CpuBoundDefinition;
      readonly instance: object;
      readonly traced: TracedTask;
    }
  | { readonly problem: Problem };

/** Holds the instances of one thread and calls their methods. */
export class ThreadHost {
  #tasks: readonly Loaded[] = [];
  #context: INestApplicationContext | undefined;
  #instancesOfModule: ReturnType<typeof instancesOf> | undefined;
  readonly #instances = new Map<Constructor, object>();

  readonly #turns = new Turns();

  constructor(private readonly plan: ThreadPlan) {}

  /** Loads the classes of the plan. A call of a class that cannot be loaded gets the error. */
  async start(): Promise<void> {
    const moduleProblem = await this.#buildModule();
    const tasks: Loaded[] = [];
    for (const task of this.plan.tasks) tasks.push(await this.#load(task, moduleProblem));
    this.#tasks = tasks;
    // Last: what was imported may have started an SDK. The process tells of one that it cannot use.
    await startTracing(() => {});
  }

  get #problems(): Problem[] {
    return this.#tasks.flatMap((task) => ('problem' in task ? task.problem : []));
  }

  async handle(message: ThreadMessage): Promise<unknown> {
    switch (message.type) {
      case 'run':
        return this.#turns.take(() => this.#run(message));
      case 'check':
        return { problems: this.#problems } satisfies ThreadReport;
      case 'close':
        await this.#context?.close().catch(() => {});
        await endTelemetry(TELEMETRY_MS);
        return undefined;
    }
  }

  async #run({ task, args, buffers, contexts, claim }: SentRequest): Promise<unknown> {
    if (claim !== undefined && !isFirstToClaim(claim)) return undefined;
    const loaded = this.#tasks[task]!;
    if ('problem' in loaded) throw new Error(describeProblems([loaded.problem])[0]);
    const { definition, instance, traced } = loaded;
    const given = restoreBuffers([...args], buffers);
    const result = await runBody(traced, () => definition.body.apply(instance, given), contexts);
    const moved = 'value' in result ? contentsOf([result.value]).moved : [];
    if (moved.length === 0) return result;
    const { Piscina } = await import('piscina');
    return Piscina.move({
      [Piscina.transferableSymbol]: moved,
      [Piscina.valueSymbol]: result,
    } as never);
  }

  async #buildModule(): Promise<string | undefined> {
    const { module } = this.plan;
    if (module === undefined) return undefined;
    try {
      const given = await moduleGivenTo(module);
      if (typeof given === 'string') return given;
      const { Logger } = await import('@nestjs/common');
      const { ModuleRef, NestFactory } = await import('@nestjs/core');
      this.#context = await NestFactory.createApplicationContext(given, {
        logger: ['error', 'warn'],
        abortOnError: false,
      });
      this.#instancesOfModule = instancesOf(this.#context, given, ModuleRef);
      // That was for what Nest says of itself while it starts; what the app says is the app's.
      Logger.overrideLogger([...LOG_LEVELS]);
      return undefined;
    } catch (error) {
      return `offload.module (${module.name}) cannot be built in a thread: ${reasonOf(error)}; what it provides must work there too`;
    }
  }

  async #load(task: PlannedTask, moduleProblem: string | undefined): Promise<Loaded> {
    const { name, file, className, method, injected } = task;
    const problem = (kind: Problem['kind'], reason: string): Loaded => ({
      problem: { kind, task: name, file, className, reason },
    });
    let exports: object;
    try {
      exports = (await import(pathToFileURL(file).href)) as object;
    } catch (error) {
      return problem('import', reasonOf(error));
    }
    const type = findClass(exports, task);
    if (type === undefined) return problem('export', '');
    if (injected && moduleProblem !== undefined) return problem('module', moduleProblem);
    const definition = ownDefinitions(type.prototype as object).find(
      (each) => each.method === method,
    )!;
    try {
      const make = injected ? () => this.#instancesOfModule!(type) : () => new type();
      const instance = await this.#instance(type, make);
      return { definition, instance, traced: { name, functionName: functionNameOf(definition) } };
    } catch (error) {
      return problem('construct', reasonOf(error));
    }
  }

  async #instance(type: Constructor, make: () => object | Promise<object>): Promise<object> {
    const instance = this.#instances.get(type) ?? (await make());
    this.#instances.set(type, instance);
    return instance;
  }
}

/** The class is known by its method: its name may be another once it is exported. */
function findClass(namespace: object, task: PlannedTask): Constructor | undefined {
  // A CommonJS file may have exports that its syntax does not show: they are all in `default`.
  const { default: rest } = namespace as { default?: unknown };
  const values: unknown[] = [
    ...Object.values(namespace),
    ...(typeof rest === 'object' && rest !== null ? Object.values(rest) : []),
  ];
  const classes = values.filter(
    (value): value is Constructor =>
      typeof value === 'function' &&
      typeof value.prototype === 'object' &&
      value.prototype !== null,
  );
  const declares = (type: Constructor) =>
    ownDefinitions(type.prototype as object).some(
      ({ method, owner }) => method === task.method && owner.constructor.name === task.className,
    );
  return classes.find(declares);
}
