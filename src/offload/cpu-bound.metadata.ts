import { isMainThread } from 'node:worker_threads';
import type { CpuBoundOptions } from '../contract/options/cpu-bound.js';
import type { CallSite } from './task/call-site.js';

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
  /** The place of the class; `undefined` if it is in no file. */
  readonly site: CallSite | undefined;
}

/** Calls the method through the dispatcher: in a thread, or on the event loop in inline mode. */
type OffloadedCall = (args: unknown[]) => unknown;

// Registered symbols, so that two copies of this package in one process find each other's classes.
const DEFINITIONS = Symbol.for('nestjs-cluster.cpu-bound');
const OFFLOADED = Symbol.for('nestjs-cluster.offloaded');
const DECLARED = Symbol.for('nestjs-cluster.declared');

/** Holds the methods of all classes that this thread has declared. */
const holder = globalThis as { [DECLARED]?: CpuBoundDefinition[] };

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
  if (!isMainThread) (holder[DECLARED] ??= []).push(definition);
}

/** Finds a method in a thread by the name of its task. Two classes may have this name, so the place counts too. */
export function declaredTask(name: string, { place }: CallSite): CpuBoundDefinition | undefined {
  return holder[DECLARED]?.find(
    (each) => each.site?.place === place && (each.options.name ?? functionNameOf(each)) === name,
  );
}

/** `Class.method`, with the class that declares the method. */
function functionNameOf({ owner, method }: CpuBoundDefinition): string {
  return `${owner.constructor.name}.${method}`;
}

/** Methods that the class of `prototype` itself declares. */
export function ownDefinitions(prototype: object): readonly CpuBoundDefinition[] {
  if (!Object.hasOwn(prototype, DEFINITIONS)) return [];
  return [...(prototype as Decorated)[DEFINITIONS]!.values()];
}

/** Methods of instances with `prototype`: first the own methods, then inherited methods that are not overridden. */
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

/** Offloads all further calls of the method on this instance. */
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

/** The function that offloads calls on this instance; `undefined` if they run directly, as in a test or a thread. */
export function offloadedCall(
  instance: unknown,
  definition: CpuBoundDefinition,
): OffloadedCall | undefined {
  return (instance as Bound | undefined)?.[OFFLOADED]?.get(definition);
}
