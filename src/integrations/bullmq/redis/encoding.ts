import { inspect, types } from 'node:util';
import { ClusterUncloneableError } from '../../../contract/errors/index.js';
import { describeError, restoreError, type TaskError } from '../../../offload/index.js';

/** The maximum depth of a value. Deeper values are refused, because only circular values are so deep. */
const MAX_DEPTH = 200;

/** The maximum length of a big integer. Longer integers are refused, because `BigInt()` is slow for them. */
const MAX_DIGITS = 10_000;

const TYPED_ARRAY = /^(Int|Uint|Float|BigInt|BigUint)(8|8Clamped|16|32|64)Array$/;

/**
 * Encodes a value as JSON. Supports values that structured clone accepts, such as dates, buffers,
 * maps and big integers. JSON is readable, does not depend on V8's version and cannot contain code.
 *
 * @param name the name of the value in the error message.
 * @throws ClusterUncloneableError for a value that cannot be sent.
 */
export function pack(value: unknown, name: string): unknown {
  return packed(value, [name]);
}

/** Encodes an error like {@link pack}. Leaves out properties that cannot be sent. */
export function packError(error: TaskError): unknown {
  if (error.kind === 'value') {
    const value = travels(error.value) ? error.value : inspect(error.value);
    return pack({ ...error, value }, 'the error');
  }
  const { cause, errors, properties, ...rest } = error;
  const own = Object.entries(properties).filter(([, value]) => travels(value));
  return {
    ...(pack(rest, 'the error') as object),
    properties: pack(Object.fromEntries(own), 'the error'),
    ...(cause && { cause: packError(cause) }),
    ...(errors && { errors: errors.map(packError) }),
  };
}

function travels(value: unknown): boolean {
  try {
    pack(value, '');
    return true;
  } catch {
    return false;
  }
}

/** Decodes the result of {@link pack}. @throws Error for anything else. */
export function unpack(value: unknown, depth = 0): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (depth > MAX_DEPTH) throw new Error('too deep');
  if (Array.isArray(value)) return value.map((entry) => unpack(entry, depth + 1));
  if (Object.hasOwn(value, '$')) return untagged(value, depth + 1);
  const object = value as Record<string, unknown>;
  // Only assigns to existing own keys, so that the key `__proto__` cannot set the prototype.
  for (const key of Object.keys(object)) object[key] = unpack(object[key], depth + 1);
  return object;
}

function packed(value: unknown, path: (string | number)[]): unknown {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'number':
      if (Object.is(value, -0)) return { $: 'number', v: '-0' };
      return Number.isFinite(value) ? value : { $: 'number', v: String(value) };
    case 'undefined':
      return { $: 'undefined' };
    case 'bigint':
      return { $: 'bigint', v: String(value) };
    case 'object':
      return value === null ? null : packedObject(value, path);
    case 'function':
    case 'symbol':
      return refuse(path, `a ${typeof value}`);
  }
}

function packedObject(value: object, path: (string | number)[]): unknown {
  if (path.length > MAX_DEPTH) refuse(path.slice(0, 5), 'nested too deep, or in a circle');
  if (Array.isArray(value)) return value.map((entry, i) => within(entry, i, path));
  // JSON stores the NaN of an invalid date as null, which untagged() turns into NaN again.
  if (types.isDate(value)) return { $: 'date', v: value.getTime() };
  if (ArrayBuffer.isView(value) || types.isArrayBuffer(value)) return packedBytes(value, path);
  if (types.isMap(value)) return { $: 'map', v: within([...value], 'entries', path) };
  if (types.isSet(value)) return { $: 'set', v: within([...value], 'values', path) };
  if (types.isNativeError(value))
    return { $: 'error', v: within(describeError(value), 'error', path) };
  const kind = Object.prototype.toString.call(value);
  if (kind !== '[object Object]' || types.isProxy(value)) refuse(path, `a ${kind.slice(8, -1)}`);
  const entries = Object.entries(value).map(([key, entry]) => [key, within(entry, key, path)]);
  return Object.hasOwn(value, '$') ? { $: 'object', v: entries } : Object.fromEntries(entries);
}

function packedBytes(value: ArrayBufferView | ArrayBuffer, path: (string | number)[]): unknown {
  const bytes = ArrayBuffer.isView(value)
    ? Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    : Buffer.from(value);
  const kind = Buffer.isBuffer(value) ? 'Buffer' : value.constructor.name;
  if (!/^(Array)?Buffer$/.test(kind) && !TYPED_ARRAY.test(kind)) refuse(path, `a ${kind}`);
  return { $: kind, v: bytes.toString('base64') };
}

function within(value: unknown, key: string | number, path: (string | number)[]): unknown {
  path.push(key);
  const result = packed(value, path);
  path.pop();
  return result;
}

/** Decodes an object whose `$` names a kind of value that JSON does not have. */
function untagged(value: { $?: unknown; v?: unknown }, depth: number): unknown {
  const { v } = value;
  const kind = String(value.$);
  const list = (): unknown[] => {
    if (!Array.isArray(v)) throw new Error(`no ${kind}`);
    return unpack(v, depth) as unknown[];
  };
  switch (kind) {
    case 'undefined':
      return undefined;
    case 'number':
      return Number(v);
    case 'date':
      return new Date(typeof v === 'number' ? v : NaN);
    case 'bigint':
      if (typeof v !== 'string' || v.length > MAX_DIGITS) throw new Error('no bigint');
      return BigInt(v);
    case 'map':
      return new Map(list() as [unknown, unknown][]);
    case 'set':
      return new Set(list());
    case 'object':
      return Object.fromEntries(list() as [string, unknown][]);
    case 'error':
      return restoreError(unpack(v, depth) as TaskError);
  }
  const bytes = Buffer.from(String(v), 'base64');
  if (kind === 'Buffer') return bytes;
  const { buffer } = new Uint8Array(bytes);
  if (kind === 'ArrayBuffer') return buffer;
  if (!TYPED_ARRAY.test(kind)) throw new Error('an unknown kind of value');
  return new (Reflect.get(globalThis, kind) as Uint8ArrayConstructor)(buffer);
}

function refuse([name, ...keys]: readonly (string | number)[], what: string): never {
  const path = keys.map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`)).join('');
  throw new ClusterUncloneableError(
    `${name}${path} is ${what}, which cannot travel through a queue; pass plain data`,
  );
}
