import * as v from 'valibot';
import { MAX_TEXT_LENGTH } from './limits.js';

const text = v.pipe(v.string(), v.maxLength(MAX_TEXT_LENGTH));
const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const amount = v.pipe(v.number(), v.finite(), v.minValue(0));

const cacheKey = { cache: text, key: text };
const cached = {
  ...cacheKey,
  /** How the client reads the body again. */
  form: text,
  /** `null`: it lives until others need its room. */
  ttlMs: v.nullable(amount),
  /** The bound of the whole cache. The bound of the last caller counts. */
  maxBytes: count,
};

/**
 * The messages of a worker. Each message with an `id` is answered. A body follows `set`, `fill`,
 * `publish`, `reply` and `say`.
 */
const toHubSchema = v.variant('op', [
  v.object({ op: v.literal('hello'), id: count, v: count, token: text, slot: count }),
  v.object({
    op: v.literal('lock'),
    id: count,
    name: text,
    waitMs: amount,
    /** The worker held the lock when the hub before this one ended. */
    reclaim: v.optional(v.boolean()),
  }),
  v.object({ op: v.literal('unlock'), grant: count }),
  /** Nobody waits for the answer to `id` any more. */
  v.object({ op: v.literal('cancel'), id: count }),
  v.object({
    op: v.literal('count'),
    id: count,
    key: text,
    ttl: amount,
    limit: v.number(),
    block: v.number(),
    throttler: text,
    /** The time of the request, by the clock of the machine. A hub that stood still counts it as of then. */
    at: v.optional(amount),
  }),
  v.object({ op: v.literal('get'), id: count, ...cacheKey }),
  v.object({ op: v.literal('set'), id: count, ...cached }),
  v.object({ op: v.literal('delete'), id: count, ...cacheKey }),
  v.object({
    op: v.literal('clear'),
    id: count,
    cache: text,
    /** Only keys that begin with it. An older hub clears the whole cache. */
    prefix: v.optional(text),
  }),
  /** Asks for keys, a part of the cache at a time. */
  v.object({
    op: v.literal('keys'),
    id: count,
    cache: text,
    prefix: text,
    /** The begin of the part: 0, then the `next` of the answer before. */
    from: count,
  }),
  /** Asks for the value or, if there is none, for the lease to compute it. One worker has it at a time. */
  v.object({ op: v.literal('lease'), id: count, ...cacheKey, waitMs: amount }),
  /** Sets the value and gives the lease back. A void lease does neither. */
  v.object({ op: v.literal('fill'), id: count, grant: count, ...cached }),
  v.object({ op: v.literal('stats'), id: count }),
  /** Asks for events. With `leaving`, other workers are preferred from now on. */
  v.object({ op: v.literal('subscribe'), id: count, leaving: v.optional(v.boolean()) }),
  v.object({ op: v.literal('unsubscribe'), id: count }),
  v.object({
    op: v.literal('publish'),
    id: count,
    name: text,
    form: text,
    to: v.union([v.picklist(['all', 'others', 'one']), count]),
    /** The answer is the `reply` of the receiver. */
    request: v.optional(v.boolean()),
  }),
  v.object({
    op: v.literal('reply'),
    to: count,
    /** The `id` of the request there. */
    request: count,
    form: text,
    failed: v.boolean(),
  }),
  /** A member in this worker gets the messages of a channel from now on. */
  v.object({ op: v.literal('join'), id: count, channel: text, name: text }),
  v.object({ op: v.literal('part'), channel: text, name: text }),
  v.object({
    op: v.literal('say'),
    channel: text,
    name: text,
    /** The name of one member. Default: all members but the sender. */
    to: v.optional(text),
    /** Asks for an `echo` with this number, at the place of the message in the common order. */
    echo: v.optional(count),
    /** Keeps the message for clients that are away: see `missed`. */
    keep: v.optional(
      v.object({ forMs: amount, maxBytes: count, tags: v.array(text), except: v.array(text) }),
    ),
  }),
  /** Asks for the messages kept after this offset, for a client with these tags. */
  v.object({
    op: v.literal('missed'),
    id: count,
    channel: text,
    after: text,
    tags: v.array(text),
  }),
]);

export type ToHub = v.InferOutput<typeof toHubSchema>;

export type RequestOf<Op extends ToHub['op']> = Extract<ToHub, { op: Op }>;

/** By `op`: `v.variant` tries one schema after the other, which takes three to eight times as long. */
const schemas = new Map<unknown, (typeof toHubSchema.options)[number]>(
  toHubSchema.options.map((schema) => [schema.entries.op.literal, schema]),
);

/** @returns `undefined` if it is not a message of a worker. */
export function readToHub(header: unknown): ToHub | undefined {
  const schema = schemas.get((header as { op?: unknown } | null)?.op);
  if (schema === undefined) return undefined;
  const { success, output } = v.safeParse(schema, header);
  return success ? output : undefined;
}

/** A message that is answered. */
export type HubRequest = Exclude<ToHub, { op: 'unlock' | 'cancel' | 'reply' | 'part' | 'say' }>;

/** The count of a client of the throttler, as in `ThrottlerStorageRecord`. */
export interface HitRecord {
  readonly totalHits: number;
  /** Seconds. */
  readonly timeToExpire: number;
  readonly isBlocked: boolean;
  /** Seconds. */
  readonly timeToBlockExpire: number;
}

export interface CacheStats {
  readonly cache: string;
  readonly bytes: number;
  readonly entries: number;
}

/** The messages of the hub. A body follows `hit`, `event`, `reply`, `said` and `kept`. */
export type FromHub =
  /** A hub with another `instance` has forgotten everything. */
  | { readonly t: 'welcome'; readonly id: number; readonly instance: string }
  /** The request cannot be served; `why` is for the log. */
  | { readonly t: 'refused'; readonly id: number; readonly why: string }
  | { readonly t: 'granted'; readonly id: number; readonly grant: number }
  /** The lock was not free within `waitMs`. */
  | { readonly t: 'expired'; readonly id: number }
  | ({ readonly t: 'counted'; readonly id: number } & HitRecord)
  | { readonly t: 'hit'; readonly id: number; readonly form: string }
  | { readonly t: 'miss'; readonly id: number }
  /** After the last part `next` is 0. */
  | { readonly t: 'keys'; readonly id: number; readonly keys: string[]; readonly next: number }
  /** The lease was over: its key was set, deleted or cleared since, or its time was up. */
  | { readonly t: 'void'; readonly id: number }
  /**
   * For values: how many were set or deleted, and how many were removed to have room. For an event: how
   * many workers it was sent to, and how many missed it.
   */
  | { readonly t: 'done'; readonly id: number; readonly changed: number; readonly evicted: number }
  | { readonly t: 'stats'; readonly id: number; readonly caches: readonly CacheStats[] }
  | {
      readonly t: 'event';
      readonly name: string;
      readonly form: string;
      readonly from: number;
      /** The sender waits for the `reply` to this number. */
      readonly request?: number | undefined;
    }
  | { readonly t: 'reply'; readonly id: number; readonly form: string; readonly failed: boolean }
  | {
      readonly t: 'said';
      readonly channel: string;
      readonly from: string;
      readonly to: string;
      readonly offset?: string | undefined;
    }
  | { readonly t: 'left'; readonly channel: string; readonly name: string }
  /** The message with this number has its place here in the common order. */
  | {
      readonly t: 'echo';
      readonly echo: number;
      readonly offset?: string | undefined;
      readonly missed: number;
    }
  /** The body has the bodies of all messages, one after the other. */
  | {
      readonly t: 'kept';
      readonly id: number;
      readonly offsets: readonly string[];
      readonly lengths: readonly number[];
    };
