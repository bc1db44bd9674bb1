/** Text that a caller chooses: a name, a key or a prefix, of at most 16,384 characters. */
type Text = string;

interface CacheKey {
  readonly cache: Text;
  readonly key: Text;
}

interface Cached extends CacheKey {
  /** How the client decodes the body. */
  readonly form: string;
  /** The lifetime of the value. `null`: the value stays until it is evicted. */
  readonly ttlMs: number | null;
  /** The maximum size of the whole cache. If callers differ, the last caller's value holds. */
  readonly maxBytes: number;
}

interface Requests {
  hello: { readonly v: number; readonly token: string; readonly slot: number };
  lock: {
    readonly name: Text;
    readonly waitMs: number;
    /** Whether the worker held the lock when the previous hub ended. */
    readonly reclaim?: boolean | undefined;
    /** If present, `name` is a key of this limit. */
    readonly limit?:
      { readonly name: Text; readonly max: number; readonly maxWaiting: number } | undefined;
  };
  count: {
    readonly key: Text;
    readonly ttl: number;
    readonly limit: number;
    readonly block: number;
    readonly throttler: Text;
    /** When the worker sent the request, by the clock of the machine. It is counted at that time. */
    readonly at?: number | undefined;
  };
  get: CacheKey;
  set: Cached;
  delete: CacheKey;
  /** Deletes only keys with this prefix, if there is one. */
  clear: { readonly cache: Text; readonly prefix?: Text | undefined };
  keys: { readonly cache: Text; readonly prefix: Text };
  /** Asks for a value, or for the lease to compute it. Only one worker holds the lease. */
  lease: CacheKey & { readonly waitMs: number };
  /** Sets the value and returns the lease. If the lease is void, nothing is set. */
  fill: Cached & { readonly grant: number };
  stats: object;
  /** Subscribes the worker to events. With `leaving`, the hub prefers other workers from now on. */
  subscribe: { readonly leaving?: boolean | undefined };
  unsubscribe: object;
  publish: {
    readonly name: Text;
    readonly to: 'all' | 'others' | 'one' | number;
    /** Whether the answer is the `reply` of the receiver. */
    readonly request?: boolean | undefined;
  };
  /** Adds a member in this worker to a channel. */
  join: { readonly channel: Text; readonly name: Text };
}

/** Messages that the hub does not answer. */
interface Notes {
  unlock: { readonly grant: number };
  /** The worker no longer waits for the answer to `id`. */
  cancel: { readonly id: number };
  reply: {
    readonly to: number;
    /** The `id` that the sender gave its request. */
    readonly request: number;
    readonly failed: boolean;
  };
  part: { readonly channel: Text; readonly name: Text };
  say: {
    readonly channel: Text;
    readonly name: Text;
    /** The name of the member that gets the message. Default: all members except the sender. */
    readonly to?: Text | undefined;
    /** Asks for an `echo` with this number, at the message's place in the common order. */
    readonly echo?: number | undefined;
  };
}

/** A message that the hub answers. A body follows `set`, `fill` and `publish`. */
export type HubRequest = {
  [Op in keyof Requests]: { readonly op: Op; readonly id: number } & Requests[Op];
}[keyof Requests];

/** A message from a worker. A body follows `reply` and `say`, too. */
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
  | { readonly t: 'keys'; readonly id: number; readonly keys: string[] }
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
