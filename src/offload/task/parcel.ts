import { types } from 'node:util';
import { isMoved, move } from '../admission/move.js';
import type { Completed } from './runner.interface.js';

/** A place in a list of values: an element, or a property of one. */
export type Place = readonly [index: number, key?: string | number];

/** Parts of values that structured clone must be told of, or does not keep. The search goes two levels deep. */
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
  forEachBuffer(values, (value, place) => {
    const buffer = ArrayBuffer.isView(value) ? value.buffer : value;
    if (isMoved(buffer)) moved.add(buffer);
    if (Buffer.isBuffer(value)) buffers.push(place);
  });
  return { moved: [...moved], buffers };
}

/** Has every buffer in values that are nobody else's moved. */
export function moveAll(values: readonly unknown[]): void {
  forEachBuffer(values, move);
}

function forEachBuffer(
  values: readonly unknown[],
  found: (value: ArrayBuffer | ArrayBufferView, place: Place) => void,
): void {
  for (const [index, value] of values.entries()) {
    if (typeof value !== 'object' || value === null) continue;
    if (isBuffer(value)) {
      found(value, [index]);
    } else if (Array.isArray(value)) {
      // By index: the keys of a long list are as many texts.
      for (let i = 0; i < value.length; i += 1) {
        const part: unknown = value[i];
        if (isBuffer(part)) found(part, [index, i]);
      }
    } else if (!losesProperties(value)) {
      for (const [key, part] of Object.entries(value))
        if (isBuffer(part)) found(part, [index, key]);
    }
  }
}

function isBuffer(value: unknown): value is ArrayBuffer | ArrayBufferView {
  return ArrayBuffer.isView(value) || value instanceof ArrayBuffer;
}

/** Structured clone takes no own properties of these. */
function losesProperties(value: object): boolean {
  return (
    types.isNativeError(value) ||
    types.isMap(value) ||
    types.isSet(value) ||
    types.isDate(value) ||
    types.isRegExp(value) ||
    types.isBoxedPrimitive(value)
  );
}

/** Makes Buffers again of what was one. */
export function restoreBuffers<T extends unknown[]>(values: T, places: readonly Place[]): T {
  for (const [index, key] of places) {
    const holder = (key === undefined ? values : values[index]) as Record<
      string | number,
      Uint8Array
    >;
    const at = key ?? index;
    const bytes = holder[at];
    if (!(bytes instanceof Uint8Array)) continue;
    holder[at] = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }
  return values;
}

/** The result of a call, as the task returned it. */
export function restoreResult({ value, buffers }: Completed): unknown {
  return restoreBuffers([value], buffers)[0];
}
