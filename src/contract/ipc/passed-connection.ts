/** An open connection from which some bytes were read. */
export interface PassedConnection {
  /** The name under which a worker takes connections. */
  readonly to: string;
  /** The bytes that were read, in base64. */
  readonly head: string;
}

/** The limit of read bytes of a connection that is passed on; the head of a request has 16 KiB by Node's default. */
export const MAX_PASSED_HEAD_BYTES = 64 * 1024;
