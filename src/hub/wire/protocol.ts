import * as v from 'valibot';
import { MAX_TEXT_LENGTH } from './limits.js';

const text = v.pipe(v.string(), v.maxLength(MAX_TEXT_LENGTH));
const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const amount = v.pipe(v.number(), v.finite(), v.minValue(0));

const cacheKey = { cache: text, key: text };
const cached = {
  ...cacheKey,
  /** How the client decodes the body. */
  form: text,
  /** The lifetime of the value. `null`: the value stays until it is evicted. */
  ttlMs: v.nullable(amount),
  /** The maximum size of the whole cache. If callers differ, the last caller's value holds. */
  maxBytes: count,
};

/**
 * The messages from a worker. The hub answers each message that has an `id`. A body follows `set`,
 * `fill`, `publish`, `reply` and `say`.
 */
const toHubSchema = v.variant('op', [
  v.object({ op: v.literal('hello'), id: count, v: count, token: text, slot: count }),
  v.object({
    op: v.literal('lock'),
    id: count,
    name: text,
    waitMs: amount,
    /** Whether the worker held the lock when the previous hub ended. */
    reclaim: v.optional(v.boolean()),
    /** If present, `name` is a key of this limit. */
    limit: v.optional(v.object({ name: text, max: count, maxWaiting: count })),
  }),
  v.object({ op: v.literal('unlock'), grant: count }),
  /** The worker no longer waits for the answer to `id`. */
  v.object({ op: v.literal('cancel'), id: count }),
  v.object({
    op: v.literal('count'),
    id: count,
    key: text,
    ttl: amount,
    limit: v.number(),
    block: v.number(),
    throttler: text,
    /**
     * When the worker sent the request, by the clock of the machine. The hub counts the request at
     * that time.
     */
    at: v.optional(amount),
  }),
  v.object({ op: v.literal('get'), id: count, ...cacheKey }),
  v.object({ op: v.literal('set'), id: count, ...cached }),
  v.object({ op: v.literal('delete'), id: count, ...cacheKey }),
  v.object({
    op: v.literal('clear'),
    id: count,
    cache: text,
    /** Deletes only keys with this prefix. */
    prefix: v.optional(text),
  }),
  /** Asks for the keys in one part of the cache. */
  v.object({
    op: v.literal('keys'),
    id: count,
    cache: text,
    prefix: text,
    /** The start of the part: 0, then the `next` of the previous answer. */
    from: count,
  }),
  /** Asks for a value, or for the lease to compute it. Only one worker holds the lease. */
  v.object({ op: v.literal('lease'), id: count, ...cacheKey, waitMs: amount }),
  /** Sets the value and returns the lease. If the lease is void, nothing is set. */
  v.object({ op: v.literal('fill'), id: count, grant: count, ...cached }),
  v.object({ op: v.literal('stats'), id: count }),
  /** Subscribes the worker to events. With `leaving`, the hub prefers other workers from now on. */
  v.object({ op: v.literal('subscribe'), id: count, leaving: v.optional(v.boolean()) }),
  v.object({ op: v.literal('unsubscribe'), id: count }),
  v.object({
    op: v.literal('publish'),
    id: count,
    name: text,
    to: v.union([v.picklist(['all', 'others', 'one']), count]),
    /** Whether the answer is the `reply` of the receiver. */
    request: v.optional(v.boolean()),
  }),
  v.object({
    op: v.literal('reply'),
    to: count,
    /** The `id` that the sender gave its request. */
    request: count,
    failed: v.boolean(),
  }),
  /** Adds a member in this worker to a channel. */
  v.object({ op: v.literal('join'), id: count, channel: text, name: text }),
  v.object({ op: v.literal('part'), channel: text, name: text }),
  v.object({
    op: v.literal('say'),
    channel: text,
    name: text,
    /** The name of the member that gets the message. Default: all members except the sender. */
    to: v.optional(text),
    /** Asks for an `echo` with this number, at the message's place in the common order. */
    echo: v.optional(count),
  }),
]);

export type ToHub = v.InferOutput<typeof toHubSchema>;

export type RequestOf<Op extends ToHub['op']> = Extract<ToHub, { op: Op }>;

/** The schema of each message. `v.variant` would try one schema after another, and take 3 to 8 times as long. */
const schemas = new Map<unknown, (typeof toHubSchema.options)[number]>(
  toHubSchema.options.map((schema) => [schema.entries.op.literal, schema]),
);

/** @returns `undefined` if `header` is not a message of a worker. */
export function readToHub(header: unknown): ToHub | undefined {
  const schema = schemas.get((header as { op?: unknown } | null)?.op);
  if (schema === undefined) return undefined;
  const { success, output } = v.safeParse(schema, header);
  return success ? output : undefined;
}

/** A message that the hub answers. */
export type HubRequest = Exclude<ToHub, { op: 'unlock' | 'cancel' | 'reply' | 'part' | 'say' }>;

/** The throttler's count of one client, as in `ThrottlerStorageRecord`. */
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

/** The messages from the hub. A body follows `hit`, `event`, `reply` and `said`. */
export type FromHub =
  /** The answer to `hello`. Another `instance` means another hub, without the former's state. */
  | { readonly t: 'welcome'; readonly id: number; readonly instance: string }
  /** The hub does not serve the request. `why` is for the log. */
  | { readonly t: 'refused'; readonly id: number; readonly why: string }
  | { readonly t: 'granted'; readonly id: number; readonly grant: number }
  /** The lock was not free within `waitMs`. */
  | { readonly t: 'expired'; readonly id: number }
  | ({ readonly t: 'counted'; readonly id: number } & HitRecord)
  | { readonly t: 'hit'; readonly id: number; readonly form: string }
  | { readonly t: 'miss'; readonly id: number }
  /** Keys of one part of the cache. `next` is the start of the next part, 0 after the last part. */
  | { readonly t: 'keys'; readonly id: number; readonly keys: string[]; readonly next: number }
  /** The lease is void: its key was set, deleted or cleared, or its time is up. */
  | { readonly t: 'void'; readonly id: number }
  /**
   * For values: `changed` values were set or deleted, and `evicted` values made room for them. For
   * an event: it was sent to `changed` workers, and `evicted` workers missed it.
   */
  | { readonly t: 'done'; readonly id: number; readonly changed: number; readonly evicted: number }
  | { readonly t: 'stats'; readonly id: number; readonly caches: readonly CacheStats[] }
  | {
      readonly t: 'event';
      readonly name: string;
      readonly from: number;
      /** Present if the sender waits for a `reply` with this number. */
      readonly request?: number | undefined;
    }
  | { readonly t: 'reply'; readonly id: number; readonly failed: boolean }
  | { readonly t: 'said'; readonly to: string }
  | { readonly t: 'left'; readonly channel: string; readonly name: string }
  /** Tells the sender at which place its message number `echo` stands, in the order that all members see. */
  | { readonly t: 'echo'; readonly echo: number; readonly missed: number };
