import * as v from 'valibot';
import type { CarriedContexts } from '../../../offload/index.js';
import { pack } from './encoding.js';

/** The version of these messages. A consumer gives a job of a newer version back to the queue. */
export const VERSION = 1;

const token = v.pipe(v.string(), v.regex(/^[\w-]{1,100}$/));

const payload = v.object({
  v: v.literal(VERSION),
  /** The name of the method, which is only looked up among the app's methods and never names a file. */
  task: v.pipe(v.string(), v.maxLength(300)),
  /** The arguments, each encoded by {@link pack}. */
  args: v.array(v.unknown()),
  /** The caller's contexts, encoded by {@link pack}. */
  contexts: v.optional(v.record(v.string(), v.unknown())),
  /** Set if a caller waits for the result. */
  call: v.optional(
    v.object({
      id: token,
      /** The address of the process that waits. */
      replyTo: token,
      /** The caller waits until this time, in ms since the epoch by the clock of Redis. */
      deadline: v.pipe(v.number(), v.finite()),
    }),
  ),
});

/** The payload of a job. */
export type JobPayload = v.InferOutput<typeof payload>;

const answer = { v: v.literal(VERSION), id: token };

const reply = v.variant('ok', [
  v.object({ ...answer, ok: v.literal(true), value: v.unknown() }),
  v.object({
    ...answer,
    ok: v.literal(false),
    /** The description of the error, encoded by {@link packError}. */
    error: v.unknown(),
    /** The method's time limit in ms. Set if the method exceeded its limit. */
    timeoutMs: v.optional(v.number()),
    /** Set if the method did not run, because the consumer does not have the method. */
    unknown: v.optional(v.boolean()),
  }),
]);

/** A consumer's reply to a call. */
export type Reply = v.InferOutput<typeof reply>;

/**
 * Creates the payload of a job without `call`. A caller that waits for the result adds `call`.
 *
 * @param parameters the names of the method's parameters, for error messages.
 * @throws ClusterUncloneableError for a value that cannot be sent.
 */
export function payloadOf(
  task: string,
  args: readonly unknown[],
  contexts: CarriedContexts | undefined,
  parameters: readonly string[] = [],
): JobPayload {
  return {
    v: VERSION,
    task,
    args: args.map((each, i) => pack(each, `argument ${parameters[i] ?? i + 1} of ${task}`)),
    ...(contexts && { contexts: pack(contexts, 'a context') as Record<string, unknown> }),
  };
}

/**
 * @returns the payload, `'newer'` for a job of a newer version of this package, or `undefined` for
 *   any other invalid job.
 */
export function readPayload(data: unknown): JobPayload | 'newer' | undefined {
  const result = v.safeParse(payload, data);
  if (result.success) return result.output;
  const version = (data as { v?: unknown } | null)?.v;
  return typeof version === 'number' && version > VERSION ? 'newer' : undefined;
}

/** @returns `undefined` for a text that is not a reply. */
export function readReply(text: string): Reply | undefined {
  try {
    return v.parse(reply, JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** The key of a process's replies. BullMQ's queue names have no colon, so BullMQ never uses this key. */
export function repliesKey(prefix: string, process: string): string {
  return `${prefix}:nestjs-cluster:replies:${process}`;
}

/** The key of the stream that tells a queue's consumers of cancelled calls and new methods. */
export function noticesKey(prefix: string, queue: string): string {
  return `${prefix}:nestjs-cluster:notices:${queue}`;
}

/**
 * The queue for redirected calls of one method. A call is redirected if the consumer that took it
 * runs another release without the method, because that consumer would only take the call again.
 * The plus sign cannot clash, because the names of an app's queues have no plus sign.
 */
export function queueOfTask(queue: string, task: string): string {
  return `${queue}+${encodeURIComponent(task)}`;
}

/** The message that announces {@link queueOfTask} to the consumers of a queue. */
export function announcementOf(task: string): string {
  return `+${task}`;
}

/** @returns the announced method, or `undefined` if the entry is the id of a cancelled call. */
export function announcedTask(entry: string): string | undefined {
  return entry.startsWith('+') ? entry.slice(1) : undefined;
}
