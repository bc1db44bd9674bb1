import { types } from 'node:util';

/** Values of these types are cloned or shared as a whole, so their parts are not checked. */
const { isAnyArrayBuffer, isDate, isRegExp } = types;

/** Maximum depth of a value. The stack of the event loop suffices to read about 1,600 levels of objects. */
const MAX_DEPTH = 1_000;

/**
 * Describes the part of a value that structured clone refuses; `undefined` if none is found.
 *
 * @param name the name of the value, with which the path begins.
 */
export function findUncloneable(value: unknown, name: string): string | undefined {
  const seen = new Set<object>();
  const rest: { path: string; value: unknown }[] = [{ path: name, value }];
  const depths = [0];
  let hasCause = false;
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    const { path, value } = next;
    const depth = depths.pop()!;
    const obstacle = obstacleIn(value);
    if (obstacle !== undefined) return `${path} is ${obstacle}`;
    if (typeof value !== 'object' || value === null || seen.has(value) || isWhole(value)) continue;
    if (depth > MAX_DEPTH) return `${name} is nested too deeply (more than ${MAX_DEPTH} levels)`;
    seen.add(value);
    try {
      hasCause ||= types.isNativeError(value) && typeof value.cause === 'object';
      // Structured clone visits the parts in this order, so it reaches the same depth in a graph.
      for (const part of partsOf(value, path).reverse()) depths[rest.push(part) - 1] = depth + 1;
    } catch (error) {
      return `${path} cannot be read: ${String(error)}`;
    }
  }
  // Node 20 cannot read an error that is its own cause.
  return hasCause && !canBeCloned(value) ? `${name} has an error that is its own cause` : undefined;
}

function obstacleIn(value: unknown): string | undefined {
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'symbol') return 'a symbol';
  if (typeof value !== 'object' || value === null) return undefined;
  if (types.isProxy(value)) return 'a Proxy';
  if (types.isPromise(value)) return 'a promise';
  if (types.isWeakMap(value)) return 'a WeakMap';
  if (types.isWeakSet(value)) return 'a WeakSet';
  if (value instanceof WeakRef) return 'a WeakRef';
  if (types.isArgumentsObject(value)) return 'an arguments object';
  return isOddNative(value) && !canBeCloned(value)
    ? `a ${Object.prototype.toString.call(value)}`
    : undefined;
}

/**
 * Only a trial shows whether these can be cloned: iterators, streams, ports, `Intl`, WebAssembly,
 * a moved buffer and its views.
 */
function isOddNative(value: object): boolean {
  if (ArrayBuffer.isView(value) || isAnyArrayBuffer(value)) return value.byteLength === 0;
  return (
    !isWhole(value) && !types.isMap(value) && !types.isSet(value) && Symbol.toStringTag in value
  );
}

function canBeCloned(value: unknown): boolean {
  try {
    structuredClone(value);
    return true;
  } catch {
    return false;
  }
}

function isWhole(value: object): boolean {
  return ArrayBuffer.isView(value) || isAnyArrayBuffer(value) || isDate(value) || isRegExp(value);
}

/** Whether a value is a list that is short or has no holes. Reading a sparse list index by index may take minutes. */
export function isDense(value: object): value is unknown[] {
  // includes() finds a hole as `undefined`.
  return Array.isArray(value) && (value.length < 1_000_000 || !value.includes(undefined));
}

function partsOf(value: object, path: string): { path: string; value: unknown }[] {
  if (types.isMap(value)) {
    return [...value].flatMap(([key, entry], i) => [
      { path: `key ${i} of ${path}`, value: key as unknown },
      { path: `entry ${i} of ${path}`, value: entry as unknown },
    ]);
  }
  if (types.isSet(value)) {
    return [...value].map((entry, i) => ({ path: `entry ${i} of ${path}`, value: entry }));
  }
  // Structured clone copies only the name, message, stack and cause of an error.
  if (types.isNativeError(value)) return [{ path: `${path}.cause`, value: value.cause }];
  if (isDense(value)) {
    // Numbers can always be cloned, and an array of numbers may be long, so they are skipped.
    return value.flatMap((entry: unknown, i) =>
      typeof entry === 'number' ? [] : [{ path: `${path}[${i}]`, value: entry }],
    );
  }
  return Object.entries(value).map(([key, entry]) => ({
    path: `${path}.${key}`,
    value: entry as unknown,
  }));
}
