import * as v from 'valibot';
import type { CarriedContexts } from '../../../offload/index.js';
import { pack } from './encoding.js';

/** The version of the messages below. A consumer gives a job with another version back to the queue. */
export const VERSION = 1;

const token = v.pipe(v.string(), v.regex(/^[\w-]{1,100}$/));

const payload = v.object({
  v: v.literal(VERSION),
  /** Looked up among the methods of the app. It never names a file. */
  task: v.pipe(v.string(), v.maxLength(300)),
  /** Packed. */
  args: v.array(v.unknown()),
  /** Packed: what `carryContext()` carries. */
  contexts: v.optional(v.unknown()),
  /** Set for a call that waits for its result. */
  call: v.optional(
    v.object({
      id: token,
      /** The process that waits. */
      replyTo: token,
      /** Until when it waits; ms since the epoch, by the clock of Redis. */
      deadline: v.pipe(v.number(), v.finite()),
    }),
  ),
});

/** The payload of a job. */
export type JobPayload = v.InferOutput<typeof payload>;

const answer = {
  v: v.literal(VERSION),
  id: token,
  /** The consumer has made the spans of the call. */
  traced: v.optional(v.boolean()),
};

const reply = v.variant('ok', [
  v.object({ ...answer, ok: v.literal(true), value: v.unknown() }),
  v.object({
    ...answer,
    ok: v.literal(false),
    /** Packed: what describes an error. */
    error: v.unknown(),
    /** Set if it ran for longer than this. */
    timeoutMs: v.optional(v.number()),
    /** It did not begin: this consumer has no such method. */
    unknown: v.optional(v.boolean()),
  }),
]);

/** A consumer's reply to a call. */
export type Reply = v.InferOutput<typeof reply>;

/**
 * The payload of a job, without `call`, which callers that wait add.
 *
 * @param parameters names of the parameters, for messages.
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
    ...(contexts && { contexts: pack(contexts, 'a context') }),
  };
}

/**
 * @returns `'newer'` for a job that another version of this package may understand; `undefined` for
 * any other invalid job.
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

/** The stream of replies to one process. Names of BullMQ's queues have no colon, so this is free. */
export function repliesKey(prefix: string, process: string): string {
  return `${prefix}:nestjs-cluster:replies:${process}`;
}

/** The stream for all consumers of a queue: cancelled calls, and announcements. */
export function noticesKey(prefix: string, queue: string): string {
  return `${prefix}:nestjs-cluster:notices:${queue}`;
}

/**
 * The queue for calls of one method. A call moves there if a consumer of its queue, of another
 * release, does not have the method: that consumer would only take the call again. Names of an
 * app's queues have no plus.
 */
export function queueOfTask(queue: string, task: string): string {
  return `${queue}+${encodeURIComponent(task)}`;
}

/** The message that announces {@link queueOfTask} to the consumers of a queue. */
export function announcementOf(task: string): string {
  return `+${task}`;
}

/** @returns the announced method; `undefined` for the id of a call. */
export function announcedTask(entry: string): string | undefined {
  return entry.startsWith('+') ? entry.slice(1) : undefined;
}
