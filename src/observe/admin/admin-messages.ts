import type { ClusterSnapshot, CollectedMetrics } from '../../contract/snapshot/index.js';

/** The data with which the thread starts. */
export interface AdminData {
  readonly host: string;
  readonly port: number;
  /** SHA-256 of the token. The token itself is not sent to the thread. */
  readonly tokenHash?: Uint8Array | undefined;
}

/** The primary's data. The thread asks for it by the names of these methods. */
export interface AdminSource {
  snapshot(): ClusterSnapshot | Promise<ClusterSnapshot>;
  collectMetrics(): Promise<CollectedMetrics>;
}

/** The primary's answer to each request. */
export type AdminAnswers = { [K in keyof AdminSource]: Awaited<ReturnType<AdminSource[K]>> };

/** The primary did not answer in time: it is blocked or stopped. */
export class PrimaryTimeout extends Error {
  constructor(timeoutMs: number) {
    super(`the primary did not answer within ${timeoutMs} ms`);
  }
}

/** From the thread to the primary. */
export type AdminThreadMessage =
  | { readonly type: 'listening'; readonly url: string; readonly port: number }
  /** The address is taken, forbidden or unknown. */
  | {
      readonly type: 'failed';
      readonly error: { readonly message: string; readonly code?: string };
    }
  | { readonly type: 'ask'; readonly id: number; readonly what: keyof AdminSource };

/** From the primary to the thread: the answer to an `ask`. */
export interface AdminAnswer {
  readonly id: number;
  readonly answer: AdminAnswers[keyof AdminSource];
}
