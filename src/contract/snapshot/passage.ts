/** An open connection as Node passes it between processes: libuv's handle. */
export interface PassedHandle {
  close(): void;
}

/** Takes a connection that another worker has passed on, with the bytes that were read from it. */
export type TakeConnection = (handle: PassedHandle, head: Buffer) => void;

/** Passes open connections from worker to worker, through the primary. */
export interface Passage {
  /** From now on this process gets the connections that are passed to `name`. Resolves once the primary knows. */
  open(name: string, take: TakeConnection): Promise<void>;
  /**
   * Passes a connection on. It comes back to `from` if nobody has the name `to` any more.
   *
   * @param from a name of this process.
   * @param head the bytes that were read from the connection.
   * @returns resolves once `handle` may be closed here; `undefined` if it cannot be passed.
   */
  pass(to: string, from: string, handle: PassedHandle, head: Buffer): Promise<void> | undefined;
}
