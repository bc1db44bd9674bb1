import type { ClusterSnapshot, CollectedMetrics } from '../../contract/snapshot/index.js';

/** What the thread is started with. */
export interface AdminData {
  readonly host: string;
  readonly port: number;
  /** SHA-256; the token itself stays with the primary. */
  readonly tokenHash?: Uint8Array | undefined;
}

/** What the primary knows. The thread asks for it by the names of these. */
export interface AdminSource {
  snapshot(): ClusterSnapshot | Promise<ClusterSnapshot>;
  collectMetrics(): Promise<CollectedMetrics>;
}

/** What the primary answers to each. */
export type AdminAnswers = { [K in keyof AdminSource]: Awaited<ReturnType<AdminSource[K]>> };

/** The primary is blocked, or stopped. */
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

/** From the primary to the thread. */
export type AdminPrimaryMessage = {
  readonly type: 'answer';
  readonly id: number;
  readonly answer: AdminAnswers[keyof AdminSource];
};
