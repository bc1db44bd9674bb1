/** An open connection from which some bytes were read. */
export interface PassedConnection {
  /** The name under which the receiving worker takes connections. */
  readonly to: string;
  /** The bytes that were read, in base64. */
  readonly head: string;
}

/**
 * The maximum number of bytes that were read from a connection before it is passed on. By Node's
 * default, the head of a request has at most 16 KiB.
 */
export const MAX_PASSED_HEAD_BYTES = 64 * 1024;
