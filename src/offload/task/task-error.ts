import * as nest from '@nestjs/common';
import { inspect } from 'node:util';
import { ClusterUncloneableError } from '../../contract/errors/errors.js';
import type { Class } from '../../contract/options/module.js';

/** Maximum number of causes that are copied, because a chain of causes may be circular. */
const MAX_CAUSES = 8;

/** An error in the form in which it is copied between threads. */
export type TaskError =
  | { readonly kind: 'value'; readonly value: unknown }
  | {
      readonly kind: 'error';
      /** Names of the error's class and of its base classes, without `Error`. */
      readonly classes: readonly string[];
      readonly name: string;
      readonly message: string;
      readonly stack: string | undefined;
      /** All other properties that can be copied, such as `code`, a status or a body. */
      readonly properties: Readonly<Record<string, unknown>>;
      readonly cause?: TaskError;
    };

const OWN_FIELDS = new Set(['name', 'message', 'stack', 'cause']);

/** Besides Nest's exceptions, errors of these classes are restored by name. */
const KNOWN: ReadonlyMap<string, { readonly prototype: Error }> = new Map(
  [
    RangeError,
    TypeError,
    SyntaxError,
    ReferenceError,
    EvalError,
    URIError,
    AggregateError,
    ClusterUncloneableError,
  ].map((type) => [type.name, type]),
);

/** Describes a thrown value of any kind in a form that can be copied. */
export function describeError(thrown: unknown): TaskError {
  try {
    return describe(thrown, 0);
  } catch {
    // A property throws when it is read.
    return { kind: 'value', value: inspect(thrown, { customInspect: false, getters: false }) };
  }
}

function describe(thrown: unknown, depth: number): TaskError {
  if (!(thrown instanceof Error)) {
    return { kind: 'value', value: isCloneable(thrown) ? thrown : inspect(thrown) };
  }
  const { message, cause, stack } = thrown;
  // `code` may be a getter of the class, and `errors` of an AggregateError is not enumerable.
  const { code, errors } = thrown as NodeJS.ErrnoException & Partial<AggregateError>;
  const own = [...Object.entries({ code, errors }), ...Object.entries(thrown)].filter(
    ([key, value]) => value !== undefined && !OWN_FIELDS.has(key) && isCloneable(value),
  );
  const classes = classesOf(thrown);
  // Without a `name` of its own, an error has the name of a built-in class.
  const isNamed = thrown.name !== Error.name && !KNOWN.has(thrown.name);
  const name = String((!isNamed && classes[0]) || thrown.name);
  return {
    kind: 'error',
    classes,
    name,
    message: String(message),
    // V8 writes the inherited name into the stack.
    stack: stack?.startsWith(thrown.name) ? name + stack.slice(thrown.name.length) : stack,
    properties: Object.fromEntries(own),
    ...(cause !== undefined && depth < MAX_CAUSES && { cause: describe(cause, depth + 1) }),
  };
}

/** The class of an error that the app has declared; `undefined` if {@link restoreError} knows the class by its name. */
export function ownClassOf(thrown: unknown): Class | undefined {
  // A DOMException cannot be made by its prototype alone.
  if (!(thrown instanceof Error) || thrown instanceof DOMException) return undefined;
  const prototype = Object.getPrototypeOf(thrown) as Error;
  const known = prototypeFor(classesOf(thrown), thrown as { status?: unknown });
  return known === prototype ? undefined : (prototype.constructor as Class);
}

/**
 * Restores a described error. An exception of Nest, or of a class that extends one, becomes an
 * instance of Nest's class, so its filters and status are as if it had been thrown here. Built-in
 * errors of JavaScript keep their class. Any other error becomes an `Error` with the original name,
 * message, stack and properties.
 *
 * @param type the app's own class of the error, if it is known here.
 */
export function restoreError(described: TaskError, type?: Class): unknown {
  if (described.kind === 'value') return described.value;
  const { classes, name, message, stack, properties, cause } = described;
  const error = new Error(message);
  const own: unknown = type?.prototype;
  Object.setPrototypeOf(error, own instanceof Error ? own : prototypeFor(classes, properties));
  for (const [key, value] of Object.entries(properties)) set(error, key, value, true);
  // The response body is missing if it could not be copied.
  if (error instanceof nest.HttpException && properties['response'] === undefined) {
    set(error, 'response', message, true);
  }
  if (error.name !== name) set(error, 'name', name);
  if (stack !== undefined) set(error, 'stack', stack);
  if (cause !== undefined) set(error, 'cause', restoreError(cause));
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
  let prototype: unknown = Object.getPrototypeOf(error);
  for (; prototype instanceof Error; prototype = Object.getPrototypeOf(prototype)) {
    names.push(String(prototype.constructor?.name));
  }
  return names;
}

function prototypeFor(
  classes: readonly string[],
  { status }: { readonly status?: unknown },
): object {
  for (const name of classes) {
    // Other packages may have classes of the same names as Nest, but without a status.
    const ofNest = typeof status === 'number' && (nest as Record<string, unknown>)[name];
    if (isHttpException(ofNest)) return ofNest.prototype;
    const known = KNOWN.get(name);
    if (known !== undefined) return known.prototype;
  }
  return Error.prototype;
}

function isHttpException(value: unknown): value is typeof nest.HttpException {
  return (
    typeof value === 'function' &&
    (value === nest.HttpException || value.prototype instanceof nest.HttpException)
  );
}
