/** An open connection of which something was read. */
export interface PassedConnection {
  /** A name that a worker has said it takes connections by. */
  readonly to: string;
  /** What was read, in base64. */
  readonly head: string;
}

/** More of a connection is not passed on: the head of a request has 16 KiB by Node's default. */
export const MAX_PASSED_HEAD_BYTES = 64 * 1024;
