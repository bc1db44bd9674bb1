import * as v from 'valibot';

/** Both ends are of one package; a rolling release may still bring two versions together. */
export const HUB_VERSION = 1;

/** Header and body of one frame. A larger one is skipped, and its sender told so. */
export const MAX_FRAME_BYTES = 24 * 1024 * 1024;

/** A value of the cache, or the payload of an event. */
export const MAX_BODY_BYTES = 16 * 1024 * 1024;

/** Characters of a name or a key. */
export const MAX_TEXT_LENGTH = 16 * 1024;

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
  /** What the cache may hold; that of the last caller counts. */
  maxBytes: count,
};

/** What a worker sends. Those with an `id` are answered; a body travels behind `set`, `fill`, `publish` and `say`. */
const toHubSchema = v.variant('op', [
  v.object({ op: v.literal('hello'), id: count, v: count, token: text, slot: count }),
  v.object({
    op: v.literal('lock'),
    id: count,
    name: text,
    waitMs: amount,
    /** It held the lock when the hub before this one ended. */
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
    /** When the request came, by the clock of the machine. A hub that has stood still counts it then. */
    at: v.optional(amount),
  }),
  v.object({ op: v.literal('get'), id: count, ...cacheKey }),
  v.object({ op: v.literal('set'), id: count, ...cached }),
  v.object({ op: v.literal('delete'), id: count, ...cacheKey }),
  v.object({
    op: v.literal('clear'),
    id: count,
    cache: text,
    /** Of the keys. An older hub clears the whole cache. */
    prefix: v.optional(text),
  }),
  /** Keys, a part of the cache at a time. */
  v.object({
    op: v.literal('keys'),
    id: count,
    cache: text,
    prefix: text,
    /** Where the part begins: 0, then the `next` of the answer before. */
    from: count,
  }),
  /** The value; or, where there is none, the lease to compute it, as soon as nobody else has it. */
  v.object({ op: v.literal('lease'), id: count, ...cacheKey, waitMs: amount }),
  /** Sets the value and gives the lease back; or neither, if the lease is void. */
  v.object({ op: v.literal('fill'), id: count, grant: count, ...cached }),
  v.object({ op: v.literal('stats'), id: count }),
  /** It wants events from now on. `leaving`: where another worker can have one as well, that one gets it. */
  v.object({ op: v.literal('subscribe'), id: count, leaving: v.optional(v.boolean()) }),
  /** It wants no more of them. */
  v.object({ op: v.literal('unsubscribe'), id: count }),
  v.object({
    op: v.literal('publish'),
    id: count,
    name: text,
    form: text,
    to: v.union([v.picklist(['all', 'others', 'one']), count]),
    /** Its answer is the `reply` of the one who gets it. */
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
  /** A member of this worker hears what is said on a channel from now on. */
  v.object({ op: v.literal('join'), id: count, channel: text, name: text }),
  v.object({ op: v.literal('part'), channel: text, name: text }),
  v.object({
    op: v.literal('say'),
    channel: text,
    name: text,
    /** One member; else all but the one who speaks. */
    to: v.optional(text),
    /** Asks for an `echo` of that number, in the order in which the others hear it. */
    echo: v.optional(count),
    /** For those who are away: see `missed`. */
    keep: v.optional(
      v.object({ forMs: amount, maxBytes: count, tags: v.array(text), except: v.array(text) }),
    ),
  }),
  /** What was said after that offset, and kept, for one who has those tags. */
  v.object({
    op: v.literal('missed'),
    id: count,
    channel: text,
    after: text,
    tags: v.array(text),
  }),
]);

export type ToHub = v.InferOutput<typeof toHubSchema>;

/** By what is asked: `v.variant` tries one after the other, which takes three to eight times as long. */
const schemas = new Map<unknown, (typeof toHubSchema.options)[number]>(
  toHubSchema.options.map((schema) => [schema.entries.op.literal, schema]),
);

/** @returns `undefined` for what is nothing that a worker says. */
export function readToHub(header: unknown): ToHub | undefined {
  const schema = schemas.get((header as { op?: unknown } | null)?.op);
  if (schema === undefined) return undefined;
  const { success, output } = v.safeParse(schema, header);
  return success ? output : undefined;
}

/** What is answered to an `id`. */
export type HubRequest = Exclude<ToHub, { op: 'unlock' | 'cancel' | 'reply' | 'part' | 'say' }>;

/** What the hub remembers of a client of the throttler; as `ThrottlerStorageRecord` has it. */
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

/** What the hub sends. A body travels behind `hit`, `event`, `said` and `kept`. */
export type FromHub =
  /** `instance`: another one has forgotten everything. */
  | { readonly t: 'welcome'; readonly id: number; readonly instance: string }
  /** The request cannot be served; `why` is for a line of the log. */
  | { readonly t: 'refused'; readonly id: number; readonly why: string }
  | { readonly t: 'granted'; readonly id: number; readonly grant: number }
  /** It took longer than the one who asked would wait. */
  | { readonly t: 'expired'; readonly id: number }
  | ({ readonly t: 'counted'; readonly id: number } & HitRecord)
  | { readonly t: 'hit'; readonly id: number; readonly form: string }
  | { readonly t: 'miss'; readonly id: number }
  /** `next`: 0 after the last part. */
  | {
      readonly t: 'keys';
      readonly id: number;
      readonly keys: readonly string[];
      readonly next: number;
    }
  /** The lease was over: its key was set, deleted or cleared since, or its time was up. */
  | { readonly t: 'void'; readonly id: number }
  /** `changed`: entries that were set, or were there to be deleted; workers that an event was sent to, or, as `evicted`, missed it. */
  | { readonly t: 'done'; readonly id: number; readonly changed: number; readonly evicted: number }
  | {
      readonly t: 'stats';
      readonly id: number;
      readonly caches: readonly CacheStats[];
    }
  | {
      readonly t: 'event';
      readonly name: string;
      readonly form: string;
      readonly from: number;
      /** The sender waits for the `reply` to it. */
      readonly request?: number | undefined;
    }
  | {
      readonly t: 'reply';
      readonly id: number;
      readonly form: string;
      readonly failed: boolean;
    }
  | {
      readonly t: 'said';
      readonly channel: string;
      readonly from: string;
      readonly to: string;
      readonly offset?: string | undefined;
    }
  | { readonly t: 'left'; readonly channel: string; readonly name: string }
  /** What was said with that number stands here among what others have said. */
  | {
      readonly t: 'echo';
      readonly echo: number;
      readonly offset?: string | undefined;
      readonly missed: number;
    }
  /** The bodies follow each other. */
  | {
      readonly t: 'kept';
      readonly id: number;
      readonly offsets: readonly string[];
      readonly lengths: readonly number[];
    };

export const NO_BODY = Buffer.alloc(0);
