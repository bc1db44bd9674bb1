import type { CpuBoundOptions } from '../contract/options/module.js';

/** A method as any of them is called. */
export type Method = (...args: unknown[]) => unknown;

/** The facts that `@CpuBound()` has of a method when its class is declared. */
export interface CpuBoundDefinition {
  /** Prototype of the class that declares it. */
  readonly owner: object;
  readonly method: string;
  readonly options: CpuBoundOptions;
  /** The decorated function, without the decorators above `@CpuBound()`: they run in the caller. */
  readonly body: Method;
  /** Absolute path of the file that declares the class; `undefined` where there is none. */
  readonly file: string | undefined;
}

/** Calls the method in a thread, or wherever this process offloads to. */
export type OffloadedCall = (args: unknown[]) => unknown;

// Registered symbols: two copies of this package in one process know each other's classes.
const DEFINITIONS = Symbol.for('nestjs-cluster.cpu-bound');
const OFFLOADED = Symbol.for('nestjs-cluster.offloaded');

interface Decorated {
  [DEFINITIONS]?: Map<string, CpuBoundDefinition>;
}

interface Bound {
  [OFFLOADED]?: Map<CpuBoundDefinition, OffloadedCall>;
}

export function defineCpuBound(definition: CpuBoundDefinition): void {
  const { owner, method } = definition;
  if (!Object.hasOwn(owner, DEFINITIONS)) {
    Object.defineProperty(owner, DEFINITIONS, { value: new Map() });
  }
  (owner as Decorated)[DEFINITIONS]!.set(method, definition);
}

/** `Class.method`, where it is declared. */
export function functionNameOf({ owner, method }: CpuBoundDefinition): string {
  return `${owner.constructor.name}.${method}`;
}

/** Methods that the class of `prototype` itself declares. */
export function ownDefinitions(prototype: object): readonly CpuBoundDefinition[] {
  if (!Object.hasOwn(prototype, DEFINITIONS)) return [];
  return [...(prototype as Decorated)[DEFINITIONS]!.values()];
}

/** Methods that an instance with `prototype` has, those that it inherits and does not override behind its own. */
export function definitionsOf(prototype: object): readonly CpuBoundDefinition[] {
  const found = new Map<string, CpuBoundDefinition>();
  const names = new Set<string>();
  for (
    let current: object | null = prototype;
    current !== null;
    current = Object.getPrototypeOf(current) as object | null
  ) {
    for (const definition of ownDefinitions(current)) {
      if (!names.has(definition.method)) found.set(definition.method, definition);
    }
    for (const name of Object.getOwnPropertyNames(current)) names.add(name);
  }
  return [...found.values()];
}

/** From now on calls of the method on this instance are offloaded. */
export function bindOffloaded(
  instance: object,
  definition: CpuBoundDefinition,
  call: OffloadedCall,
): void {
  if (!Object.hasOwn(instance, OFFLOADED)) {
    Object.defineProperty(instance, OFFLOADED, { value: new Map() });
  }
  (instance as Bound)[OFFLOADED]!.set(definition, call);
}

/** How the method is called on this instance; `undefined` where it simply runs: in a test, in a thread. */
export function offloadedCall(
  instance: unknown,
  definition: CpuBoundDefinition,
): OffloadedCall | undefined {
  return (instance as Bound | undefined)?.[OFFLOADED]?.get(definition);
}
