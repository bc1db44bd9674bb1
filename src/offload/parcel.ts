import { isMoved } from './move.js';

/** Where in a list of values something is: an element of it, or a property of one. */
export type Place = readonly [index: number, key?: string];

/** What values hold that structured clone must be told of, or does not keep. Looked for two levels deep. */
export interface Contents {
  /** To be moved, not copied. */
  readonly moved: ArrayBuffer[];
  /** `Buffer`s: they arrive as a bare `Uint8Array`, whose `toString('base64')` is something else. */
  readonly buffers: readonly Place[];
}

const NOTHING: Contents = Object.freeze({ moved: [], buffers: [] });

export function contentsOf(values: readonly unknown[]): Contents {
  if (values.every((value) => typeof value !== 'object')) return NOTHING;
  const moved = new Set<ArrayBuffer>();
  const buffers: Place[] = [];
  const note = (value: unknown, ...place: [number, string?]): boolean => {
    if (!ArrayBuffer.isView(value) && !(value instanceof ArrayBuffer)) return false;
    const buffer = ArrayBuffer.isView(value) ? value.buffer : value;
    if (isMoved(buffer)) moved.add(buffer);
    if (Buffer.isBuffer(value)) buffers.push(place);
    return true;
  };
  for (const [index, value] of values.entries()) {
    if (typeof value !== 'object' || value === null || note(value, index)) continue;
    for (const key of Object.keys(value)) note((value as Record<string, unknown>)[key], index, key);
  }
  return { moved: [...moved], buffers };
}

/** Makes Buffers again of what was one. */
export function restoreBuffers<T extends unknown[]>(values: T, places: readonly Place[]): T {
  for (const [index, key] of places) {
    const holder = (key === undefined ? values : values[index]) as Record<string, Uint8Array>;
    const at = key ?? String(index);
    const { buffer, byteOffset, byteLength } = holder[at]!;
    holder[at] = Buffer.from(buffer, byteOffset, byteLength);
  }
  return values;
}
