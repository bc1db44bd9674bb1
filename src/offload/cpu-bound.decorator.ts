import { isMainThread } from 'node:worker_threads';
import { ClusterConfigurationError } from '../contract/errors/errors.js';
import type { Class } from '../contract/options/module.js';
import { type CpuBoundOptions, resolveCpuBoundOptions } from '../contract/options/cpu-bound.js';
import { callerFile } from './task/caller-file.js';

export type Method = (...args: unknown[]) => unknown;

/** A decorated method. Created by `@CpuBound()` when the class is declared. */
export interface CpuBoundDefinition {
  /** The prototype of the class that declares the method. */
  readonly owner: object;
  readonly method: string;
  readonly options: CpuBoundOptions;
  /** The decorated function. Decorators above `@CpuBound()` run in the caller, so it does not include them. */
  readonly body: Method;
  /** Absolute path of the file that declares the class. `undefined` for evaluated code without a file. */
  readonly file: string | undefined;
  /** The functions that offload calls, by instance. Calls on other instances run directly, as in a unit test. */
  readonly offloaded: WeakMap<object, (args: unknown[]) => unknown>;
}

// Symbol.for(), so that two copies of this package in one process find each other's classes.
const DEFINITIONS = Symbol.for('nestjs-cluster.cpu-bound');
const DECLARED = Symbol.for('nestjs-cluster.declared');
const MODULE = Symbol.for('nestjs-cluster.offload-module');

const holder = globalThis as { [DECLARED]?: CpuBoundDefinition[]; [MODULE]?: Class | undefined };

/**
 * Called by `forRoot()`. A class cannot be sent to a thread, so the thread imports the file that calls
 * `forRoot()` and gets the class from this call.
 */
export function noteModuleInThread(module: Class | undefined): void {
  if (!isMainThread && module !== undefined) holder[MODULE] = module;
}

export function moduleInThread(): Class | undefined {
  return holder[MODULE];
}

/** The name of a task. It is unique in the app and the same in all threads. */
export function taskNameOf({ owner, method, options }: CpuBoundDefinition): string {
  return options.name ?? `${owner.constructor.name}.${method}`;
}

/** Finds a method in a thread. `undefined` if the file declares no method or several methods of this name. */
export function declaredTask(name: string, file: string): CpuBoundDefinition | undefined {
  const found = holder[DECLARED]?.filter((each) => each.file === file && taskNameOf(each) === name);
  return found?.length === 1 ? found[0] : undefined;
}

/** The decorated methods of a class. Includes inherited methods that are not overridden. */
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
 * Runs a method in a thread, so that it does not block the event loop. Controller handlers keep their
 * route, pipes, guards, interceptors and filters. Callers of a provider's method get a promise, so
 * declare the method `async`.
 *
 * The thread imports the file of the class and calls the method on its own instance. It creates the
 * instance with `new` if the constructor takes no arguments, otherwise from `offload.module`.
 * Arguments, results and errors are copied by structured clone, so a class instance arrives as plain
 * data. The app needs `ClusterModule.forRoot()`. Without it, as in a unit test, the method runs
 * directly.
 *
 * A call rejects with {@link TaskRejectedException} (503), {@link TaskTimeoutException} (504),
 * {@link TaskAbortedException}, {@link ThreadLostException} (500), {@link ClusterUncloneableError},
 * or the error that the method throws.
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
      throw new ClusterConfigurationError(`${subject} has @CpuBound() twice; remove one`);
    }
    // `nestjs-cluster-tools doctor` reads this property.
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
    // Modified in place, because applyDecorators() ignores a decorator's return value.
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
      '@CpuBound() was applied as a standard decorator; set "experimentalDecorators": true in tsconfig.json, as Nest requires',
    );
  }
  if (typeof key !== 'string' || typeof target === 'function') {
    throw new ClusterConfigurationError(
      `${subject} cannot have @CpuBound(): it is static or its name is a symbol; use an instance method whose name is a string`,
    );
  }
  if (typeof descriptor?.value !== 'function') {
    throw new ClusterConfigurationError(
      `${subject} cannot have @CpuBound(): it is not a method; decorate a method, not a getter or a property`,
    );
  }
  return descriptor.value as Method;
}

/** Decorators below `@CpuBound()` set metadata on `from`. Decorators above it read the metadata of `to`. */
function copyMethodMetadata(from: Method, to: Method): void {
  for (const name of ['name', 'length'] as const) {
    Object.defineProperty(to, name, { value: from[name], configurable: true });
  }
  for (const key of Reflect.getOwnMetadataKeys(from) as unknown[]) {
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key as string, from), to);
  }
}
