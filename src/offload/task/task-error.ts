import * as nest from '@nestjs/common';
import { inspect } from 'node:util';
import { ClusterUncloneableError } from '../../contract/errors/errors.js';
import type { Class } from '../../contract/options/module.js';

/** Maximum number of copied causes, because a chain of causes may be circular. */
const MAX_CAUSES = 8;

/** A thrown value in a form that can be cloned. */
export type TaskError =
  | { readonly kind: 'value'; readonly value: unknown }
  | {
      readonly kind: 'error';
      /** Names of the error's class and its base classes, without `Error`. */
      readonly classes: readonly string[];
      readonly name: string;
      readonly message: string;
      readonly stack: string | undefined;
      /** All other properties that can be cloned, such as `code`, a status or a body. */
      readonly properties: Readonly<Record<string, unknown>>;
      readonly cause?: TaskError;
    };

const OWN_FIELDS = new Set(['name', 'message', 'stack', 'cause']);

/** Errors of these classes and Nest's exceptions are restored by class name. */
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

export function describeError(thrown: unknown): TaskError {
  try {
    return describe(thrown, 0);
  } catch {
    // Reading a property threw an error.
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
  // Without its own `name`, an error has the name of a built-in class.
  const isNamed = thrown.name !== Error.name && !KNOWN.has(thrown.name);
  const name = String((!isNamed && classes[0]) || thrown.name);
  return {
    kind: 'error',
    classes,
    name,
    message: String(message),
    // V8 uses the inherited name in the stack.
    stack: stack?.startsWith(thrown.name) ? name + stack.slice(thrown.name.length) : stack,
    properties: Object.fromEntries(own),
    ...(cause !== undefined && depth < MAX_CAUSES && { cause: describe(cause, depth + 1) }),
  };
}

/** The class of an error, if the app declares it. `undefined` if {@link restoreError} finds the class by name. */
export function ownClassOf(thrown: unknown): Class | undefined {
  // Setting the prototype is not enough to create a DOMException.
  if (!(thrown instanceof Error) || thrown instanceof DOMException) return undefined;
  const prototype = Object.getPrototypeOf(thrown) as Error;
  const known = prototypeFor(classesOf(thrown), thrown as { status?: unknown });
  return known === prototype ? undefined : (prototype.constructor as Class);
}

/**
 * Restores an error. A Nest exception, or a subclass of it, becomes an instance of Nest's class, so that
 * exception filters and the status work. Built-in errors of JavaScript keep their class. Any other
 * error becomes an `Error` with the original name, message, stack and properties.
 *
 * @param type the app's own class of the error, if this thread has it.
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

/** An assignment would fail if the prototype has a getter without a setter. */
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
    // Other packages' classes may have the same names as Nest's, but no status.
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
