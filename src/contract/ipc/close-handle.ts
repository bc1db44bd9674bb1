/** Closes a socket or a server that came with a message but is not used. Otherwise it would stay open. */
export function closeHandle(handle: unknown): void {
  if (typeof handle !== 'object' || handle === null) return;
  const { destroy, close } = handle as { destroy?: unknown; close?: unknown };
  const end = typeof destroy === 'function' ? destroy : close;
  if (typeof end === 'function') Reflect.apply(end, handle, []);
}
