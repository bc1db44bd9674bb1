const MOVED = Symbol.for('nestjs-cluster.moved');

/**
 * Moves a buffer between threads instead of copying it, if it is an argument or
 * the result of a `@CpuBound()` method, or a property or an entry of one. The
 * sender cannot use it any more: its length is 0 then.
 *
 * A view of a part of a larger buffer (as small `Buffer`s are) is copied, since
 * the rest would go with it.
 *
 * @returns the same value.
 */
export function move<T extends ArrayBuffer | ArrayBufferView>(value: T): T {
  const buffer = ArrayBuffer.isView(value) ? value.buffer : value;
  if (buffer instanceof ArrayBuffer && buffer.byteLength === value.byteLength) {
    Object.defineProperty(buffer, MOVED, { value: true, configurable: true });
  }
  return value;
}

export function isMoved(buffer: ArrayBufferLike): buffer is ArrayBuffer {
  return Object.hasOwn(buffer, MOVED);
}
