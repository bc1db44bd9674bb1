import { deserialize, serialize } from 'node:v8';

/**
 * What workers tell each other of what is for clients: JSON, as it is for a client, with binary data
 * beside it. A form that kept more, such as `serialize()` alone, would have clients of other workers
 * receive a `Date` or a `toJSON()` otherwise than those of this one.
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

/** A string that begins with it stands for something else: a part, or a string that began with it. */
const MARK = '\0';

function takeOut(parts: Buffer[]) {
  return function (this: Record<string, unknown>, key: string, item: unknown): unknown {
    const raw = this[key]; // a Buffer has a toJSON() of its own
    if (isBinary(raw)) return `${MARK}${parts.push(bytesOf(raw)) - 1}`;
    return typeof item === 'string' && item.startsWith(MARK) ? MARK + item : item;
  };
}

function putBack(parts: readonly Buffer[]) {
  return (_key: string, item: unknown): unknown => {
    if (typeof item !== 'string' || !item.startsWith(MARK)) return item;
    // A view of what the hub has sent would keep all of it.
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
