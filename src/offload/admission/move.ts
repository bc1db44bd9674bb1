const MOVED = Symbol.for('nestjs-cluster.moved');

/**
 * Marks a buffer so that it is moved between threads, not copied. It must be an argument or the
 * result of a `@CpuBound()` method, or a property or an entry of an argument or result. Afterwards
 * the sender cannot use the buffer: its length is 0.
 *
 * A view of a part of a larger buffer, such as a small `Buffer`, is still copied, because the whole
 * buffer would be moved.
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
