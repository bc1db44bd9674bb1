/** An open connection as Node passes it between processes: libuv's handle. */
export interface PassedHandle {
  close(): void;
}

/** What is done with a connection that another worker has passed on, and with what was read of it. */
export type TakeConnection = (handle: PassedHandle, head: Buffer) => void;

/** Open connections pass from worker to worker, through the primary. */
export interface Passage {
  /** Connections that are passed to `name` are this process's from now on. Resolves once the primary knows. */
  open(name: string, take: TakeConnection): Promise<void>;
  /**
   * Passes a connection on. It comes back to `from` where nobody has that name any more.
   *
   * @param from a name of this process.
   * @param head what was read of the connection.
   * @returns resolves once `handle` may be closed here; `undefined` where it cannot be passed.
   */
  pass(to: string, from: string, handle: PassedHandle, head: Buffer): Promise<void> | undefined;
}
