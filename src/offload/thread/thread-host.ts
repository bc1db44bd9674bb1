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

/** Identifies a task in a thread. For security, no field comes from a request. */
export interface PlannedTask {
  readonly name: string;
  /** Absolute path of the file that declares the class. */
  readonly file: string;
  readonly className: string;
  /** Whether the instance must come from `offload.module`, because it has dependencies. */
  readonly injected: boolean;
}

/** All tasks that a thread can run. */
export interface ThreadPlan {
  readonly tasks: readonly PlannedTask[];
  /** `file` passes `offload.module` to `forRoot()`. */
  readonly module: { readonly name: string; readonly file: string | undefined } | undefined;
  /**
   * The app's main file, and whether the function passed to `bootstrap()` only imports a file.
   * `undefined` if importing the main file in a thread would start the app again.
   */
  readonly main: { readonly file: string; readonly importsApp: boolean } | undefined;
}

/** The `workerData` of a thread. */
export interface ThreadSettings {
  readonly plan: ThreadPlan;
  /** The directory of Node's compile cache. `undefined` without a cache. */
  readonly compileCache: string | undefined;
}

interface SentCall {
  /** Index in {@link ThreadPlan.tasks}. */
  readonly task: number;
  readonly args: readonly unknown[];
  readonly trace: TraceHeaders | undefined;
  /** The Buffers in the arguments. */
  readonly buffers: readonly Place[];
}

/** A result, as a thread sends it. `place` identifies the class of an error. */
export type SentResult = RunResult & { readonly place?: ExportedClass | undefined };

/** The messages to a thread. */
export type ThreadMessage =
  /** Runs a call. The reply is a {@link SentResult}. */
  | ({ readonly type: 'run' } & SentCall)
  /** Checks all tasks. The reply is a list of {@link Problem}. */
  | { readonly type: 'check' }
  /** Closes the module and telemetry before the thread is terminated. */
  | { readonly type: 'close' };

/** Timeout for shutting down an OpenTelemetry SDK in the thread: below `CLOSE_MS` of the pool. */
const TELEMETRY_MS = 900;

type Constructor = new () => object;

/** Nest's default log levels. */
const LOG_LEVELS = ['verbose', 'debug', 'log', 'warn', 'error', 'fatal'] as const;

/** A loaded task, or the reason why it could not be loaded. */
type Loaded =
  | { readonly name: string; readonly definition: CpuBoundDefinition; readonly instance: object }
  | { readonly problem: Problem };

/** Creates the instances in a thread, and calls their methods. */
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

  /** @returns why `offload.module` cannot be initialised. `undefined` on success and without a module. */
  async #buildModule(): Promise<string | undefined> {
    const { module } = this.plan;
    if (module === undefined) return undefined;
    const { name, file } = module;
    if (file === undefined)
      return `a thread cannot import offload.module (${name}): forRoot() was called in evaluated code; call it in a file`;
    try {
      const find = (exports: object): unknown =>
        moduleInThread() ?? (exports as Record<string, unknown>)[name];
      const given = await this.#evaluate(file, find);
      if (typeof given !== 'function') {
        return (
          `a thread cannot find offload.module (${name}): it has imported ${file}, ` +
          `but the import did not call forRoot(). Call forRoot() in a @Module() decorator, or export ${name} from the file`
        );
      }
      const { Logger } = await import('@nestjs/common');
      const { ModuleRef, NestFactory } = await import('@nestjs/core');
      this.#context = await NestFactory.createApplicationContext(given as Type, {
        logger: ['error', 'warn'],
        abortOnError: false,
      });
      this.#instancesOfModule = instancesOf(this.#context, given as Type, ModuleRef);
      // Only Nest's own lines during startup are limited. The app logs at all levels.
      Logger.overrideLogger([...LOG_LEVELS]);
      return undefined;
    } catch (error) {
      return `a thread cannot initialise offload.module (${name}): ${reasonOf(error)}; make sure that its providers work in a thread`;
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
   * Imports a file that declares a class. Importing a bundle may only define modules, without
   * evaluating them. In this case, imports the whole app as a worker does, but does not create it.
   *
   * @param find gets the file's exports after the import, and finds the class.
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

/** Terminates the thread and its call. A new thread may be able to load the task. */
function endThread(error: Error): Promise<never> {
  setImmediate(() => {
    throw error;
  });
  return new Promise(() => {});
}

/**
 * Returns a function that finds the instance of a class in `module`, otherwise in any other module. If
 * there is none, it creates an instance with the providers of `module`.
 *
 * @param key Nest's class `ModuleRef`. A parameter, because threads load Nest only on demand.
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
        // The module has no instance, or no module has one.
      }
    }
    return moduleRef.create(type);
  };
}
