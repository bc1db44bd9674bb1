/** A place in a list of values: an element, or a property of an element. */
export type Place = readonly [index: number, key?: string | number];

/**
 * The places of `Buffer`s, which structured clone turns into a plain `Uint8Array` with another
 * `toString()`. A `Buffer` that is nested more deeply is not found.
 */
export function buffersIn(values: readonly unknown[]): Place[] {
  const places: Place[] = [];
  for (const [index, value] of values.entries()) {
    if (Buffer.isBuffer(value)) places.push([index]);
    else if (Array.isArray(value)) {
      // Object.entries() would create a string for each element of a long list.
      for (const [i, part] of value.entries()) if (Buffer.isBuffer(part)) places.push([index, i]);
    } else if (typeof value === 'object' && value !== null && !ArrayBuffer.isView(value)) {
      for (const [key, part] of Object.entries(value)) {
        if (Buffer.isBuffer(part)) places.push([index, key]);
      }
    }
  }
  return places;
}

/** Turns each `Uint8Array` at `places` into a `Buffer` again. */
export function restoreBuffers<T extends unknown[]>(values: T, places: readonly Place[]): T {
  for (const [index, key] of places) {
    const holder = (key === undefined ? values : values[index]) as Record<string | number, unknown>;
    const at = key ?? index;
    const bytes = holder[at];
    // Structured clone loses the properties of a Map, an error and others.
    if (!(bytes instanceof Uint8Array)) continue;
    holder[at] = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }
  return values;
}
