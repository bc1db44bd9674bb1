import type { INestApplicationContext } from '@nestjs/common';
import { pathToFileURL } from 'node:url';
import { type CpuBoundDefinition, definitionsOf, ownDefinitions } from '../cpu-bound.metadata.js';
import { contentsOf, restoreBuffers } from '../parcel.js';
import { runBody } from '../run-body.js';
import type { RunResult, SentRequest } from '../runner.interface.js';
import { moduleGivenTo } from './module-in-thread.js';
import type { PlannedTask, ThreadPlan } from './plan.js';

/** What is asked of a thread. */
export type ThreadMessage =
  | ({ readonly type: 'run' } & SentRequest)
  /** Can you run every task? Answered by a list of what stands in the way. */
  | { readonly type: 'check' }
  /** You will be ended: let go of what you hold. */
  | { readonly type: 'close' };

type Constructor = new () => object;

/** A task that can be called, or why it cannot. */
type Loaded =
  | { readonly definition: CpuBoundDefinition; readonly instance: object }
  | { readonly problem: string };

/** Holds the instances of one thread and calls their methods. */
export class ThreadHost {
  #tasks: readonly Loaded[] = [];
  #context: INestApplicationContext | undefined;
  readonly #instances = new Map<Constructor, object>();

  constructor(private readonly plan: ThreadPlan) {}

  /** Loads what the plan names. Never rejects: what cannot be loaded is told when it is asked for. */
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
        return [...new Set(this.#tasks.flatMap((task) => ('problem' in task ? task.problem : [])))];
      case 'close':
        await this.#context?.close().catch(() => {});
        return undefined;
    }
  }

  async #run({ task, args, buffers, contexts }: SentRequest): Promise<unknown> {
    const loaded = this.#tasks[task]!;
    if ('problem' in loaded) return { ok: false, unavailable: loaded.problem } satisfies RunResult;
    const { definition, instance } = loaded;
    const given = restoreBuffers([...args], buffers);
    const result = await runBody(() => definition.body.apply(instance, given), contexts);
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
      const { NestFactory } = await import('@nestjs/core');
      this.#context = await NestFactory.createApplicationContext(given, {
        logger: ['error', 'warn'],
        abortOnError: false,
      });
      return undefined;
    } catch (error) {
      return `offload.module (${module.name}) cannot be built in a thread: ${reasonOf(error)}`;
    }
  }

  async #load(task: PlannedTask, moduleProblem: string | undefined): Promise<Loaded> {
    try {
      const exports = (await import(pathToFileURL(task.file).href)) as object;
      const found = findClass(exports, task);
      if (found === undefined) return { problem: notExported(task) };
      const definition = definitionsOf(found.prototype as object).find(
        ({ method }) => method === task.method,
      )!;
      if (!task.injected)
        return { definition, instance: await this.#instance(found, () => new found()) };
      if (moduleProblem !== undefined) return { problem: moduleProblem };
      const instance = await this.#instance(found, () => this.#inject(found));
      return { definition, instance };
    } catch (error) {
      return { problem: cannotLoad(task, error) };
    }
  }

  async #instance(type: Constructor, make: () => object | Promise<object>): Promise<object> {
    const instance = this.#instances.get(type) ?? (await make());
    this.#instances.set(type, instance);
    return instance;
  }

  /** The module's own instance, or one that the module makes of what it provides. */
  async #inject(type: Constructor): Promise<object> {
    const { ModuleRef } = await import('@nestjs/core');
    try {
      return this.#context!.get(type, { strict: false });
    } catch {
      return this.#context!.get(ModuleRef).create(type);
    }
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

function notExported({ name, className, file }: PlannedTask): string {
  return (
    `${name}: a thread has imported ${file} and found no export of the class ${className}. ` +
    `Export it from the file that declares it. Where a bundler has put the app into one file, build without it (tsc or SWC alone); ` +
    `or set CLUSTER_OFFLOAD=inline to run @CpuBound() methods on the event loop`
  );
}

function cannotLoad({ name, file }: PlannedTask, error: unknown): string {
  return (
    `${name}: a thread cannot import ${file}, or make an instance of its class: ${reasonOf(error)}. ` +
    `Threads run the compiled file with Node alone, so a bundler, or a test runner that compiles on the fly, may be in the way: ` +
    `run compiled files (tsc or SWC), or set CLUSTER_OFFLOAD=inline to run @CpuBound() methods on the event loop, as tests do`
  );
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message.split('\n')[0]}` : String(error);
}
