import { isMainThread } from 'node:worker_threads';
import { ClusterConfigurationError } from '../contract/errors/errors.js';
import type { Class } from '../contract/options/module.js';
import { type CpuBoundOptions, resolveCpuBoundOptions } from '../contract/options/cpu-bound.js';
import { callerFile } from './task/caller-file.js';

/** Any method. */
export type Method = (...args: unknown[]) => unknown;

/** The facts about a method that `@CpuBound()` records when the class is declared. */
export interface CpuBoundDefinition {
  /** Prototype of the class that declares the method. */
  readonly owner: object;
  readonly method: string;
  readonly options: CpuBoundOptions;
  /** The decorated function. Decorators above `@CpuBound()` are not in it: they run in the caller. */
  readonly body: Method;
  /** Absolute path of the file with the class; `undefined` if it is in no file. */
  readonly file: string | undefined;
  /** The functions that offload the calls of instances. Other instances run directly, as in a test or a thread. */
  readonly offloaded: WeakMap<object, (args: unknown[]) => unknown>;
}

// Registered symbols, so that two copies of this package in one process find each other's classes.
const DEFINITIONS = Symbol.for('nestjs-cluster.cpu-bound');
const DECLARED = Symbol.for('nestjs-cluster.declared');
const MODULE = Symbol.for('nestjs-cluster.offload-module');

/** Holds the methods of all classes that this thread has declared, and its `offload.module`. */
const holder = globalThis as { [DECLARED]?: CpuBoundDefinition[]; [MODULE]?: Class | undefined };

/**
 * Called by `forRoot()`. A class cannot be sent to a thread. Instead the thread imports the file that
 * calls `forRoot()` with the class, so that `forRoot()` is called in the thread too.
 */
export function noteModuleInThread(module: Class | undefined): void {
  if (!isMainThread && module !== undefined) holder[MODULE] = module;
}

export function moduleInThread(): Class | undefined {
  return holder[MODULE];
}

/** The name of a task: unique in an app, and the same in each thread. */
export function taskNameOf({ owner, method, options }: CpuBoundDefinition): string {
  return options.name ?? `${owner.constructor.name}.${method}`;
}

/** Finds a method in a thread; `undefined` if the file declares none of this name, or several. */
export function declaredTask(name: string, file: string): CpuBoundDefinition | undefined {
  const found = holder[DECLARED]?.filter((each) => each.file === file && taskNameOf(each) === name);
  return found?.length === 1 ? found[0] : undefined;
}

/** Methods of instances with `prototype`: its own, and inherited methods that are not overridden. */
export function definitionsOf(prototype: object): CpuBoundDefinition[] {
  const found = new Map<string, CpuBoundDefinition | undefined>();
  let current: object | null = prototype;
  while (current !== null) {
    for (const name of Object.getOwnPropertyNames(current)) {
      if (!found.has(name)) found.set(name, ownDefinitions(current).get(name));
    }
    current = Object.getPrototypeOf(current) as object | null;
  }
  return [...found.values()].filter((each) => each !== undefined);
}

function ownDefinitions(prototype: object): ReadonlyMap<string, CpuBoundDefinition> {
  const own = Object.getOwnPropertyDescriptor(prototype, DEFINITIONS)?.value as
    ReadonlyMap<string, CpuBoundDefinition> | undefined;
  return own ?? new Map();
}

/**
 * Runs a method in a thread, so that the event loop stays free. Controller handlers keep their
 * route, pipes, guards, interceptors and filters. Callers of a provider's method get a promise, so
 * declare the method `async`.
 *
 * The thread imports the file of the class and runs the body on its own instance. It creates that
 * instance by `new` if the constructor takes no arguments, else from `offload.module`. Arguments,
 * results and errors are copied by structured clone, so a class instance arrives as plain data. The
 * app needs `ClusterModule.forRoot()`. Without it, as in a unit test, the method runs directly.
 *
 * A call is rejected with {@link TaskRejectedException} (503), {@link TaskTimeoutException} (504),
 * {@link TaskAbortedException} or {@link ThreadLostException} (500), {@link
 * ClusterUncloneableError}, or the error that the body throws.
 *
 * @throws ClusterConfigurationError if an option is wrong or the decorated member is not a method.
 */
export function CpuBound(options: CpuBoundOptions = {}): MethodDecorator {
  return (target, key, descriptor) => {
    const className = (typeof target === 'function' ? target : target.constructor).name;
    const subject = `${className}.${String(key)}()`;
    const body = checkedBody(target, key, descriptor, subject);
    const definition: CpuBoundDefinition = {
      owner: target,
      method: key as string,
      options: resolveCpuBoundOptions(options, subject),
      body,
      file: callerFile(),
      offloaded: new WeakMap(),
    };
    const others = ownDefinitions(target);
    if (others.has(definition.method)) {
      throw new ClusterConfigurationError(`${subject} has @CpuBound() twice; leave one`);
    }
    // A property, which `nestjs-cluster-tools doctor` reads.
    Object.defineProperty(target, DEFINITIONS, {
      value: new Map([...others, [definition.method, definition]]),
      configurable: true,
    });
    if (!isMainThread) (holder[DECLARED] ??= []).push(definition);
    const value = function (this: unknown, ...args: unknown[]): unknown {
      const offloaded = definition.offloaded.get(this as object);
      return offloaded === undefined ? body.apply(this, args) : offloaded(args);
    };
    copyMethodMetadata(body, value);
    // Changed in place, because applyDecorators() ignores the return value of a decorator.
    descriptor.value = value as never;
    return descriptor;
  };
}

function checkedBody(
  target: object,
  key: unknown,
  descriptor: PropertyDescriptor | undefined,
  subject: string,
): Method {
  if (typeof key === 'object') {
    throw new ClusterConfigurationError(
      '@CpuBound() was applied as a standard decorator; like those of Nest it needs "experimentalDecorators": true in tsconfig.json',
    );
  }
  if (typeof key !== 'string' || typeof target === 'function') {
    throw new ClusterConfigurationError(
      `${subject} cannot have @CpuBound(): a thread finds methods of instances by their name; make it a method that is neither static nor named by a symbol`,
    );
  }
  if (typeof descriptor?.value !== 'function') {
    throw new ClusterConfigurationError(
      `${subject} cannot have @CpuBound(): it is not a method; decorate a method (not a getter, not a property that holds a function)`,
    );
  }
  return descriptor.value as Method;
}

/** Copies the metadata that decorators below `@CpuBound()` have set to the wrapper, where decorators above it read. */
function copyMethodMetadata(from: Method, to: Method): void {
  for (const name of ['name', 'length'] as const) {
    Object.defineProperty(to, name, { value: from[name], configurable: true });
  }
  for (const key of Reflect.getOwnMetadataKeys(from) as unknown[]) {
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key as string, from), to);
  }
}
