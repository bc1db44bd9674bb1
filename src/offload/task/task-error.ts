import * as nest from '@nestjs/common';
import { inspect } from 'node:util';
import { ClusterUncloneableError } from '../../contract/errors/index.js';
import type { Class } from '../../contract/options/module.js';
import { numberOf } from './instances.js';

/** Maximum number of causes that are copied, because a chain of causes may be circular. */
const MAX_CAUSES = 8;

/** An error in the form in which it is copied between threads. */
export type TaskError =
  | { readonly kind: 'value'; readonly value: unknown }
  | {
      readonly kind: 'error';
      /** Names of the error's class and of its base classes, without `Error`. */
      readonly classes: readonly string[];
      /** Number of the class, if the app has declared it. */
      readonly type?: number;
      readonly name: string;
      readonly message: string;
      readonly stack: string | undefined;
      /** All other properties that can be copied, such as `code`, a status or a body. */
      readonly properties: Readonly<Record<string, unknown>>;
      readonly cause?: TaskError;
    };

const OWN_FIELDS = new Set(['name', 'message', 'stack', 'cause']);

/**
 * Describes a thrown value of any kind in a form that can be copied.
 *
 * @param types gets the app's own classes.
 */
export function describeError(thrown: unknown, types?: Class[]): TaskError {
  try {
    return describe(thrown, 0, types);
  } catch {
    // A property throws when it is read.
    return { kind: 'value', value: inspect(thrown, { customInspect: false, getters: false }) };
  }
}

function describe(thrown: unknown, depth: number, types?: Class[]): TaskError {
  if (!(thrown instanceof Error)) {
    return { kind: 'value', value: isCloneable(thrown) ? thrown : inspect(thrown) };
  }
  const { message, cause } = thrown;
  const name = nameOf(thrown);
  // `code` may be a getter of the class, and `errors` of an AggregateError is not enumerable.
  const { code, errors } = thrown as NodeJS.ErrnoException & Partial<AggregateError>;
  const own = [...Object.entries({ code, errors }), ...Object.entries(thrown)].filter(
    ([key, value]) => value !== undefined && !OWN_FIELDS.has(key) && isCloneable(value),
  );
  const classes = classesOf(thrown);
  const prototype = Object.getPrototypeOf(thrown) as Error;
  // A DOMException cannot be made by its prototype alone.
  const isOfApp =
    prototypeFor(classes, Object.fromEntries(own)) !== prototype &&
    !(thrown instanceof DOMException);
  return {
    kind: 'error',
    classes,
    ...(types && isOfApp && { type: numberOf(prototype.constructor as Class, types) }),
    name,
    message: String(message),
    stack: stackOf(thrown, name),
    properties: Object.fromEntries(own),
    ...(cause !== undefined && depth < MAX_CAUSES && { cause: describe(cause, depth + 1, types) }),
  };
}

/**
 * Restores a described error. An exception of Nest, or of a class that extends one, becomes an
 * instance of Nest's class, so its filters and status are as if it had been thrown here. Built-in
 * errors of JavaScript keep their class, and so do errors of the app whose class is known here. Any
 * other error becomes an `Error` with the original name, message, stack and properties.
 *
 * @param types the app's own classes, by their number.
 */
export function restoreError(
  described: TaskError,
  types: readonly (Class | undefined)[] = [],
): unknown {
  if (described.kind === 'value') return described.value;
  const { classes, type = -1, name, message, stack, properties, cause } = described;
  const error = new Error(message);
  const known: unknown = types[type]?.prototype;
  Object.setPrototypeOf(error, known instanceof Error ? known : prototypeFor(classes, properties));
  for (const [key, value] of Object.entries(properties)) set(error, key, value, true);
  // The response body is missing if it could not be copied.
  if (error instanceof nest.HttpException && properties['response'] === undefined) {
    set(error, 'response', message, true);
  }
  if (error.name !== name) set(error, 'name', name);
  if (stack !== undefined) set(error, 'stack', stack);
  if (cause !== undefined) set(error, 'cause', restoreError(cause, types));
  return error;
}

/** Defines the property. An assignment would fail if the prototype has a getter of that name without a setter. */
function set(error: Error, key: string, value: unknown, enumerable = false): void {
  Object.defineProperty(error, key, { value, enumerable, writable: true, configurable: true });
}

function isCloneable(value: unknown): boolean {
  try {
    structuredClone(value);
    return true;
  } catch {
    return false;
  }
}

function classesOf(error: Error): string[] {
  const names: string[] = [];
  for (
    let prototype = Object.getPrototypeOf(error) as object | null;
    prototype !== null && prototype !== Error.prototype && prototype !== Object.prototype;
    prototype = Object.getPrototypeOf(prototype) as object | null
  ) {
    names.push(String(prototype.constructor?.name));
  }
  return names;
}

const NATIVE_ERRORS: readonly ErrorConstructor[] = [
  RangeError,
  TypeError,
  SyntaxError,
  ReferenceError,
  EvalError,
  URIError,
];

/** The built-in classes of errors, which the app's own classes extend. */
const BASES = [Error, AggregateError, ...NATIVE_ERRORS];

/** The name of an error. If its class sets no `name`, the name of the class, which would otherwise be lost. */
function nameOf(error: Error): string {
  let holder: object | null = error;
  while (holder !== null && !Object.hasOwn(holder, 'name')) {
    holder = Object.getPrototypeOf(holder) as object | null;
  }
  const isNamed = !BASES.some(({ prototype }) => prototype === holder);
  const { constructor } = Object.getPrototypeOf(error) as Partial<Error>;
  return String((!isNamed && constructor?.name) || error.name);
}

/** The stack with the given name, as {@link inspect} shows it. V8 writes the inherited name. */
function stackOf({ name, stack }: Error, shown: string): string | undefined {
  return stack?.startsWith(name) ? shown + stack.slice(name.length) : stack;
}

function prototypeFor(
  classes: readonly string[],
  { status }: Readonly<Record<string, unknown>>,
): object {
  // Other packages may have classes of the same names.
  const isOfNest = classes.includes(nest.HttpException.name) && typeof status === 'number';
  for (const name of classes) {
    const exported: unknown =
      isOfNest && Object.hasOwn(nest, name) && (nest as Record<string, unknown>)[name];
    if (isHttpException(exported)) return exported.prototype;
    const native = NATIVE_ERRORS.find((candidate) => candidate.name === name);
    if (native !== undefined) return native.prototype;
    if (name === ClusterUncloneableError.name) return ClusterUncloneableError.prototype;
    if (name === AggregateError.name) return AggregateError.prototype;
  }
  return Error.prototype;
}

function isHttpException(exported: unknown): exported is typeof nest.HttpException {
  return (
    typeof exported === 'function' &&
    (exported === nest.HttpException || exported.prototype instanceof nest.HttpException)
  );
}
