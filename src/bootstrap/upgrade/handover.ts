import type { Socket } from 'node:net';
import type { HubAddress } from '../../contract/snapshot/index.js';
import type { Bequest } from '../../supervisor/decide/leadership.js';
import type { PassedSocket } from '../../supervisor/listening/activated-socket.js';

/** Environment variable of a new primary: the {@link Handover} as JSON. */
export const HANDOVER_VARIABLE = 'NESTJS_CLUSTER_HANDOVER';

/** The new primary's descriptor of the pipe to the old one, after the three streams. */
export const PIPE_DESCRIPTOR = 3;

/** Changes only if the two primaries could not work together. A new optional field does not change it. */
export const HANDOVER_VERSION = 1;

/** The facts that the old primary passes to the new one at its start. */
export interface Handover {
  readonly v: typeof HANDOVER_VERSION;
  /** The pid of the old primary. */
  readonly pid: number;
  /** The pid of the first primary, whose environment every later one gets. */
  readonly firstPid: number;
  /** The app's listening socket. Missing if the old primary has none. */
  readonly socket?: PassedSocket | undefined;
  /** The socket of the admin listener, and the options that it was opened with. */
  readonly admin?:
    { readonly fd: number; readonly host: string; readonly port: number } | undefined;
  /** The number of workers in the options, and the number that there should be now. */
  readonly workers: { readonly configured: number; readonly desired: number };
}

/** The messages over the pipe, each a line of JSON. If the pipe closes, the other primary is gone. */
export type ToNewPrimary =
  /** The old primary has closed its control socket and begins to drain. */
  | { readonly type: 'take-over' }
  | ({ readonly type: 'hub' } & HubAddress)
  | { readonly type: 'hub-refused'; readonly reason: string }
  /** Every worker of the old primary has ended. */
  | ({ readonly type: 'left' } & Bequest);

export type ToOldPrimary =
  | { readonly type: 'hub-request' }
  /** Every worker is ready and has passed the canary. */
  | { readonly type: 'serving' }
  | { readonly type: 'failed'; readonly reason: string };

/** Sends a message. Resolves once it is written, or cannot be written because the other side is gone. */
export function sendLine(pipe: Socket, message: ToNewPrimary | ToOldPrimary): Promise<void> {
  return new Promise((resolve) => void pipe.write(`${JSON.stringify(message)}\n`, () => resolve()));
}
