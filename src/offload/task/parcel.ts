import { types } from 'node:util';
import { isMoved, move } from '../admission/move.js';
import { isDense } from './cloneable.js';
import { restoreInstances } from './instances.js';
import type { Completed } from './runner.interface.js';

/** A place in a list of values: an element, or a property of an element. */
export type Place = readonly [index: number, key?: string | number];

/** The buffers in a list of values that need care: buffers to move, and buffers that structured clone changes. */
interface Contents {
  /** Buffers to move instead of copying. */
  readonly moved: ArrayBuffer[];
  /** Places of `Buffer`s, which arrive as a plain `Uint8Array` with another `toString()`. */
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

/** Marks every buffer in `values` to be moved. Nobody else may use the values. */
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
    } else if (isDense(value)) {
      // Loops by index, because Object.entries() would create a string for each element of a long list.
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

/** Structured clone does not copy the own properties of these types. */
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

/** Turns each `Uint8Array` at `places` into a `Buffer` again. */
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
export function restoreResult({ value, buffers, instances = [], types = [] }: Completed): unknown {
  restoreInstances(value, instances, types);
  return restoreBuffers([value], buffers)[0];
}
