/** The version of the protocol. During a rolling release two versions may meet. */
export const HUB_VERSION = 1;

/** The maximum size of a frame. A larger frame is not sent. */
export const MAX_FRAME_BYTES = 24 * 1024 * 1024;

/** The maximum size of a cached value or an event's payload. */
export const MAX_BODY_BYTES = 16 * 1024 * 1024;

/** The maximum length of a name or a key, in characters. */
export const MAX_TEXT_LENGTH = 16 * 1024;

interface CacheKey {
  readonly cache: string;
  readonly key: string;
}

interface Cached extends CacheKey {
  /** The lifetime of the value. `null`: no expiry, but the value may be evicted. */
  readonly ttlMs: number | null;
  /** The maximum size of the whole cache. The first value creates the cache with this size. */
  readonly maxBytes: number;
}

interface Membership {
  readonly channel: string;
  readonly name: string;
}

interface Requests {
  hello: { readonly v: number; readonly slot: number };
  lock: {
    readonly name: string;
    readonly waitMs: number;
    /** Whether the worker held the lock when the previous hub ended. */
    readonly reclaim?: boolean | undefined;
    /** If set, `name` is a key of this limit. */
    readonly limit?:
      { readonly name: string; readonly max: number; readonly maxWaiting: number } | undefined;
  };
  /** Counts a request of one client. `throttler`: the name of one throttler of `@nestjs/throttler`. */
  count: {
    readonly key: string;
    readonly ttl: number;
    readonly limit: number;
    readonly block: number;
    readonly throttler: string;
  };
  get: CacheKey;
  set: Cached;
  delete: CacheKey;
  /** With `prefix`, deletes only keys that begin with it. */
  clear: { readonly cache: string; readonly prefix?: string | undefined };
  keys: { readonly cache: string; readonly prefix: string };
  /** Asks for a value, or for the lease to compute it. Only one worker holds the lease. */
  lease: CacheKey;
  /** Sets the value and returns the lease. If the lease is void, the value is not set. */
  fill: Cached & { readonly grant: number };
  stats: object;
  /** Subscribes the worker to events. With `leaving`, the hub prefers other workers from now on. */
  subscribe: { readonly leaving?: boolean | undefined };
  unsubscribe: object;
  publish: {
    readonly name: string;
    readonly to: 'all' | 'others' | 'one' | number;
    /** Whether the sender waits for the receiver's `reply`. */
    readonly request?: boolean | undefined;
  };
  /** Adds a member in this worker to a channel. */
  join: Membership;
}

/** Messages that the hub does not answer. */
interface Notes {
  unlock: { readonly grant: number };
  /** The worker no longer waits for the answer to `id`. */
  cancel: { readonly id: number };
  /** Answers the event `request` of worker number `to`. */
  reply: { readonly to: number; readonly request: number; readonly failed: boolean };
  part: Membership;
  say: Membership & {
    /** The name of the member that gets the message. Default: all members except the sender. */
    readonly to?: string | undefined;
    /** Asks for an `echo` with this number, at the message's place in the common order. */
    readonly echo?: number | undefined;
  };
}

/** A message that the hub answers. A body follows `set`, `fill` and `publish`. */
export type HubRequest = {
  [Op in keyof Requests]: { readonly op: Op; readonly id: number } & Requests[Op];
}[keyof Requests];

/** A message from a worker. A body also follows `reply` and `say`. */
export type ToHub =
  HubRequest | { [Op in keyof Notes]: { readonly op: Op } & Notes[Op] }[keyof Notes];

export type RequestOf<Op extends ToHub['op']> = Extract<ToHub, { op: Op }>;

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
  readonly hits: number;
  readonly misses: number;
  readonly evictions: number;
}

/** The messages from the hub. A body follows `hit`, `event`, `reply` and `said`. */
export type FromHub =
  /** The answer to `hello`. */
  | { readonly t: 'welcome'; readonly id: number }
  /** The hub refuses the request. `why` is for the log. */
  | { readonly t: 'refused'; readonly id: number; readonly why: string }
  | { readonly t: 'granted'; readonly id: number; readonly grant: number }
  /** The lock is not free, and the request may not wait. */
  | { readonly t: 'taken'; readonly id: number }
  | ({ readonly t: 'counted'; readonly id: number } & HitRecord)
  | { readonly t: 'hit'; readonly id: number }
  | { readonly t: 'miss'; readonly id: number }
  | { readonly t: 'keys'; readonly id: number; readonly keys: string[] }
  /** The lease is void: its key was set, deleted or cleared, or its time is up. */
  | { readonly t: 'void'; readonly id: number }
  /** `changed`: values set or deleted, or workers that got the event. `missed`: workers that read too slowly. */
  | { readonly t: 'done'; readonly id: number; readonly changed: number; readonly missed?: number }
  | { readonly t: 'stats'; readonly id: number; readonly caches: readonly CacheStats[] }
  | {
      readonly t: 'event';
      readonly name: string;
      readonly from: number;
      /** Set if the sender waits for a `reply` with this number. */
      readonly request?: number | undefined;
    }
  | { readonly t: 'reply'; readonly id: number; readonly failed: boolean }
  | { readonly t: 'said'; readonly to: string }
  | { readonly t: 'left'; readonly channel: string; readonly name: string }
  /** Tells the sender where message `echo` is in the order that all members see. */
  | { readonly t: 'echo'; readonly echo: number; readonly missed: number };

/** The connection of one worker, as the hub sees it. */
export interface Peer {
  /** Newer connections have higher numbers. */
  readonly number: number;
  slot: number;
  /** Whether the worker is about to exit. */
  leaving: boolean;
  /** The number of bytes that the worker has not read. */
  readonly unsentBytes: number;
  /** @param body may be a view of reused memory, so a peer copies a body that it keeps. */
  send(header: FromHub, body?: Buffer): void;
}

/** Events and messages to a worker with more unread bytes than this are dropped. */
export const MAX_BACKLOG_BYTES = 8 * 1024 * 1024;
