import * as v from 'valibot';
import type { PrimaryMessage } from './primary-message.js';
import { type WorkerMessage, workerMessageSchema } from './worker-message.js';

/**
 * The fields of every message that name this package and the version of the protocol. The version
 * changes only if the two sides could not work together. A new optional field does not change it.
 */
const ENVELOPE = { ns: 'nestjs-cluster', v: 1 } as const;

/** The type of {@link ENVELOPE}, for code that runs before any module is loaded and so repeats the value. */
export type Envelope = typeof ENVELOPE;

const envelopeSchema = v.looseObject({
  ns: v.literal(ENVELOPE.ns),
  v: v.literal(ENVELOPE.v),
  type: v.string(),
});

/** The usual signal to end a program. The app's shutdown hooks get it if no signal was sent. */
export const LEAVE_SIGNAL = 'SIGTERM';

/** Puts a message in its envelope. */
export function seal<T extends WorkerMessage | PrimaryMessage>(message: T): T & typeof ENVELOPE {
  return { ...ENVELOPE, ...message };
}

/** Whether a message claims to belong to this package, in any version. */
export function isOurs(message: unknown): boolean {
  return (
    typeof message === 'object' &&
    message !== null &&
    (message as { ns?: unknown }).ns === ENVELOPE.ns
  );
}

/** The version of a message of this package, if it differs from the version of this process. */
export function foreignVersionOf(message: unknown): number | undefined {
  if (!isOurs(message)) return undefined;
  const { v: version } = message as { v?: unknown };
  return Number.isInteger(version) && version !== ENVELOPE.v ? (version as number) : undefined;
}

/** The message of a worker; `undefined` if it does not match the protocol. */
export function parseWorkerMessage(message: unknown): WorkerMessage | undefined {
  if (!v.is(envelopeSchema, message)) return undefined;
  const result = v.safeParse(workerMessageSchema, message);
  return result.success ? result.output : undefined;
}

/** The message of the primary, or `undefined`. The primary is trusted, so only the envelope is checked. */
export function parsePrimaryMessage(message: unknown): PrimaryMessage | undefined {
  return v.is(envelopeSchema, message) ? (message as unknown as PrimaryMessage) : undefined;
}

/** Closes a socket or a server that came with a message but is not used. Otherwise it would stay open. */
export function closeHandle(handle: unknown): void {
  if (typeof handle !== 'object' || handle === null) return;
  const { destroy, close } = handle as { destroy?: unknown; close?: unknown };
  const end = typeof destroy === 'function' ? destroy : close;
  if (typeof end === 'function') Reflect.apply(end, handle, []);
}
