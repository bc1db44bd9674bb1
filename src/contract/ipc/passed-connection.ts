/** An open connection from which some bytes were read. */
export interface PassedConnection {
  /** The name under which the receiving worker takes connections. */
  readonly to: string;
  /** The bytes that were read, in base64. */
  readonly head: string;
}

/** The maximum size of the head of a passed connection. Node's default for the head of a request is 16 KiB. */
export const MAX_PASSED_HEAD_BYTES = 64 * 1024;
