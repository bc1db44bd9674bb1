import type { INestApplicationContext } from '@nestjs/common';
import { endTelemetry } from '../../contract/process/telemetry.js';
import { type CpuBoundDefinition, declaredTask } from '../cpu-bound.decorator.js';
import { type ExportedClass, ExportedClasses } from '../task/exported-classes.js';
import { type Place, restoreBuffers, runBody, type RunResult } from '../task/run-body.js';
import type { TraceHeaders } from '../task/trace-context.js';
import { AppCode, instancesOf, moduleGivenTo } from './app-code.js';
import type { PlannedTask, ThreadPlan } from './plan.js';
import { describeProblems, type Problem, reasonOf } from './problem.js';

/** A call in the form in which it is sent to a thread. */
interface SentCall {
  /** Number of the task in the plan. */
  readonly task: number;
  readonly args: readonly unknown[];
  readonly trace: TraceHeaders | undefined;
  /** The places of Buffers in the arguments. */
  readonly buffers: readonly Place[];
}

/** A result in the form in which a thread sends it: the class of an error is named by its place. */
export type SentResult = RunResult & { readonly place?: ExportedClass | undefined };

/** The messages to a thread. */
export type ThreadMessage =
  /** Runs a call. Answered by a {@link SentResult}. */
  | ({ readonly type: 'run' } & SentCall)
  /** Asks whether every task can run. Answered by the problems of tasks that cannot run. */
  | { readonly type: 'check' }
  /** Closes the module and telemetry, because the thread will be ended. */
  | { readonly type: 'close' };

/** Maximum time for an OpenTelemetry SDK in the thread to shut down, in ms. */
const TELEMETRY_MS = 500;

/** Ends the thread with its call. The next thread may load what this one could not. */
function endThread(error: Error): Promise<never> {
  setImmediate(() => {
    throw error;
  });
  return new Promise(() => {});
}

type Constructor = new () => object;

/** Nest's default log levels. */
const LOG_LEVELS = ['verbose', 'debug', 'log', 'warn', 'error', 'fatal'] as const;

/** A loaded task, or the problem that kept it from loading. */
type Loaded =
  | { readonly name: string; readonly definition: CpuBoundDefinition; readonly instance: object }
  | { readonly problem: Problem };

/** Creates the instances in one thread and calls their methods. */
export class ThreadHost {
  #tasks: readonly Loaded[] = [];
  #context: INestApplicationContext | undefined;
  #instancesOfModule: ReturnType<typeof instancesOf> | undefined;
  readonly #instances = new Map<Constructor, object>();

  readonly #classes = new ExportedClasses();
  readonly #code: AppCode;

  constructor(private readonly plan: ThreadPlan) {
    this.#code = new AppCode(plan.main);
  }

  /** Loads the classes of the plan. If a class cannot be loaded, calls of its tasks fail. */
  async start(): Promise<void> {
    const moduleProblem = await this.#buildModule();
    const tasks: Loaded[] = [];
    for (const task of this.plan.tasks) tasks.push(await this.#load(task, moduleProblem));
    this.#tasks = tasks;
  }

  async handle(message: ThreadMessage): Promise<unknown> {
    switch (message.type) {
      case 'run':
        return this.#run(message);
      case 'check':
        return this.#tasks.flatMap((task) => ('problem' in task ? task.problem : []));
      case 'close':
        await this.#context?.close().catch(() => {});
        await endTelemetry(TELEMETRY_MS);
        return undefined;
    }
  }

  async #run({ task, args, buffers, trace }: SentCall): Promise<SentResult> {
    const loaded = this.#tasks[task]!;
    if ('problem' in loaded) return endThread(new Error(describeProblems([loaded.problem])[0]));
    const { name, definition, instance } = loaded;
    const given = restoreBuffers([...args], buffers);
    const result = await runBody(name, () => definition.body.apply(instance, given), trace);
    if (result.ok || result.type === undefined) return result;
    const { type, ...ran } = result;
    return { ...ran, place: await this.#classes.find(type) };
  }

  async #buildModule(): Promise<string | undefined> {
    const { module } = this.plan;
    if (module === undefined) return undefined;
    try {
      const given = await moduleGivenTo(module, this.#code);
      if (typeof given === 'string') return given;
      const { Logger } = await import('@nestjs/common');
      const { ModuleRef, NestFactory } = await import('@nestjs/core');
      this.#context = await NestFactory.createApplicationContext(given, {
        logger: ['error', 'warn'],
        abortOnError: false,
      });
      this.#instancesOfModule = instancesOf(this.#context, given, ModuleRef);
      // Only Nest's own lines at start are reduced; the app logs at all levels.
      Logger.overrideLogger([...LOG_LEVELS]);
      return undefined;
    } catch (error) {
      return `offload.module (${module.name}) cannot be built in a thread: ${reasonOf(error)}; what it provides must work there too`;
    }
  }

  async #load(task: PlannedTask, moduleProblem: string | undefined): Promise<Loaded> {
    const { name, file, className, injected } = task;
    const problem = (kind: Problem['kind'], reason: string): Loaded => ({
      problem: { kind, task: name, file, className, reason },
    });
    let definition: CpuBoundDefinition | undefined;
    try {
      definition = await this.#code.evaluate(file, () => declaredTask(name, file));
    } catch (error) {
      return problem('import', reasonOf(error));
    }
    if (definition === undefined) return problem('undeclared', '');
    if (injected && moduleProblem !== undefined) return problem('module', moduleProblem);
    try {
      const type = definition.owner.constructor as Constructor;
      const make = injected ? () => this.#instancesOfModule!(type) : () => new type();
      return { name, definition, instance: await this.#instance(type, make) };
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
