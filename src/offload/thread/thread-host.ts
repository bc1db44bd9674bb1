import type { INestApplicationContext, Type } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';
import { pathToFileURL } from 'node:url';
import { endTelemetry } from '../../contract/process/telemetry.js';
import { appImport } from '../../contract/snapshot/app-import.js';
import { type CpuBoundDefinition, declaredTask, moduleInThread } from '../cpu-bound.decorator.js';
import { type ExportedClass, ExportedClasses } from '../task/exported-classes.js';
import { type Place, restoreBuffers, runBody, type RunResult } from '../task/run-body.js';
import type { TraceHeaders } from '../task/trace-context.js';
import {
  constructionFails,
  describeProblems,
  importFails,
  isUndeclared,
  type Problem,
  reasonOf,
  TASKS,
} from './problem.js';

/** The name and place by which a thread finds a task. No field comes from a request. */
export interface PlannedTask {
  readonly name: string;
  /** Absolute path of the file with the class. */
  readonly file: string;
  readonly className: string;
  /** Whether the instance comes from `offload.module`, because Nest injects something into it. */
  readonly injected: boolean;
}

/** All tasks that a thread can run. The number of a task is its index in `tasks`. */
export interface ThreadPlan {
  readonly tasks: readonly PlannedTask[];
  /** The file that calls `forRoot()` with `offload.module`. */
  readonly module: { readonly name: string; readonly file: string | undefined } | undefined;
  /**
   * The main file of the app, which starts nothing in a thread, and whether the function passed to
   * `bootstrap()` only imports a file. `undefined` if the main file would start another app.
   */
  readonly main: { readonly file: string; readonly importsApp: boolean } | undefined;
}

/** The data with which a thread starts. */
export interface ThreadSettings {
  readonly plan: ThreadPlan;
  /** The directory of Node's compile cache; `undefined` without one. */
  readonly compileCache: string | undefined;
}

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
  #whole: Promise<unknown> | undefined;
  #context: INestApplicationContext | undefined;
  #instancesOfModule: ReturnType<typeof instancesOf> | undefined;
  readonly #instances = new Map<Constructor, object>();
  readonly #classes = new ExportedClasses();

  constructor(private readonly plan: ThreadPlan) {}

  /** Loads the classes of the plan. If a class cannot be loaded, calls of its tasks fail. */
  async start(): Promise<void> {
    const moduleProblem = await this.#buildModule();
    const tasks: Loaded[] = [];
    for (const task of this.plan.tasks) {
      const loaded = await this.#load(task, moduleProblem);
      tasks.push(
        typeof loaded === 'string' ? { problem: { task: task.name, text: loaded } } : loaded,
      );
    }
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

  /** @returns why instances of `offload.module` cannot be made; `undefined` if they can, and without a module. */
  async #buildModule(): Promise<string | undefined> {
    const { module } = this.plan;
    if (module === undefined) return undefined;
    const { name, file } = module;
    if (file === undefined)
      return `offload.module (${name}): forRoot() was called outside of any file`;
    try {
      const find = (exports: object): unknown =>
        moduleInThread() ?? (exports as Record<string, unknown>)[name];
      const given = await this.#evaluate(file, find);
      if (typeof given !== 'function') {
        return (
          `offload.module (${name}) cannot be found by a thread: it has imported ${file}, which calls forRoot(), ` +
          `but forRoot() was not called meanwhile. Call it where a @Module() is declared, or export ${name} from that file`
        );
      }
      const { Logger } = await import('@nestjs/common');
      const { ModuleRef, NestFactory } = await import('@nestjs/core');
      this.#context = await NestFactory.createApplicationContext(given as Type, {
        logger: ['error', 'warn'],
        abortOnError: false,
      });
      this.#instancesOfModule = instancesOf(this.#context, given as Type, ModuleRef);
      // Only Nest's own lines at start are reduced; the app logs at all levels.
      Logger.overrideLogger([...LOG_LEVELS]);
      return undefined;
    } catch (error) {
      return `offload.module (${name}) cannot be built in a thread: ${reasonOf(error)}; what it provides must work there too`;
    }
  }

  /** @returns the task, or the text of a {@link Problem}. */
  async #load(task: PlannedTask, moduleProblem: string | undefined): Promise<Loaded | string> {
    const { name, file, className, injected } = task;
    let definition: CpuBoundDefinition | undefined;
    try {
      definition = await this.#evaluate(file, () => declaredTask(name, file));
    } catch (error) {
      return importFails(file, error);
    }
    if (definition === undefined) return isUndeclared(file, className);
    if (injected && moduleProblem !== undefined) return `${moduleProblem} (needed by ${TASKS})`;
    try {
      const type = definition.owner.constructor as Constructor;
      const instance =
        this.#instances.get(type) ?? (injected ? await this.#instancesOfModule!(type) : new type());
      this.#instances.set(type, instance);
      return { name, definition, instance };
    } catch (error) {
      return constructionFails(file, className, error);
    }
  }

  /**
   * Imports a file that declares a class. If a bundler made the file, the import may only define
   * modules that other code evaluates. So the thread then imports the whole app, as a worker does,
   * without creating it.
   *
   * @param find looks for the class, also in the exports of the file.
   */
  async #evaluate<T>(file: string, find: (exports: object) => T): Promise<T> {
    const exports = (await import(pathToFileURL(file).href)) as object;
    const found = find(exports);
    const { main } = this.plan;
    if (found !== undefined || main === undefined) return found;
    await (this.#whole ??= importWhole(main));
    return find(exports);
  }
}

async function importWhole({ file, importsApp }: NonNullable<ThreadPlan['main']>): Promise<void> {
  await import(pathToFileURL(file).href);
  if (importsApp) await appImport()?.({} as never);
}

/** Ends the thread with its call. The next thread may load what this one could not. */
function endThread(error: Error): Promise<never> {
  setImmediate(() => {
    throw error;
  });
  return new Promise(() => {});
}

/**
 * Returns a function that finds the instance of a class: in `module`, else in any other module,
 * else a new instance with providers of `module`.
 *
 * @param key Nest's class `ModuleRef`, which the caller has loaded.
 */
export function instancesOf(
  context: INestApplicationContext,
  module: Type,
  key: typeof ModuleRef,
): <T>(type: new () => T) => Promise<T> {
  // Without select(), Nest would return the ModuleRef of the module that it created last.
  const moduleRef = context.select(module).get(key, { strict: true });
  return async (type) => {
    for (const strict of [true, false]) {
      try {
        return moduleRef.get(type, { strict });
      } catch {
        // No instance in this scope: the wider one is tried, then one is created.
      }
    }
    return moduleRef.create(type);
  };
}
