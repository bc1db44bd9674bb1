import { deserialize, serialize } from 'node:v8';

/**
 * Encodes data for other workers' clients as JSON, just as for this worker's own, with binary data
 * kept separately. `serialize()` alone would treat a `Date` or a `toJSON()` differently.
 */
export function encodeJson(value: unknown): Buffer {
  const parts: Buffer[] = [];
  const json = JSON.stringify(value, hasBinary(value) ? takeOut(parts) : undefined);
  return serialize([json, ...parts]);
}

export function decodeJson(bytes: Buffer): unknown {
  const [json, ...parts] = deserialize(bytes) as [string, ...Buffer[]];
  return JSON.parse(json, parts.length === 0 ? undefined : putBack(parts));
}

/** Prefix of strings that refer to a binary part. A string that begins with the mark is prefixed once more. */
const MARK = '\0';

function takeOut(parts: Buffer[]) {
  return function (this: Record<string, unknown>, key: string, item: unknown): unknown {
    const raw = this[key]; // `item` is the result of toJSON(), which Buffers define
    if (isBinary(raw)) return `${MARK}${parts.push(bytesOf(raw)) - 1}`;
    return typeof item === 'string' && item.startsWith(MARK) ? MARK + item : item;
  };
}

function putBack(parts: readonly Buffer[]) {
  return (_key: string, item: unknown): unknown => {
    if (typeof item !== 'string' || !item.startsWith(MARK)) return item;
    // Copied, because a view would keep the whole message in memory.
    return item[1] === MARK ? item.slice(1) : Buffer.from(parts[Number(item.slice(1))]!);
  };
}

function isBinary(value: unknown): value is ArrayBufferView | ArrayBuffer {
  return ArrayBuffer.isView(value) || value instanceof ArrayBuffer;
}

function bytesOf(raw: ArrayBufferView | ArrayBuffer): Buffer {
  if (!ArrayBuffer.isView(raw)) return Buffer.from(raw);
  return Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
}

function hasBinary(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (isBinary(value)) return true;
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON === 'function') return hasBinary(toJSON.call(value) as unknown);
  return Object.values(value).some(hasBinary);
}
