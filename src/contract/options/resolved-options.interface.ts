import type { ClusterEventListeners } from '../log/events.js';
import type {
  ClusterOptions,
  MemoryOptions,
  RecycleOptions,
  ReloadOptions,
  ShutdownOptions,
} from './cluster-options.interface.js';
import type { ResolvedWarningOptions } from './warning-options.interface.js';
import type { ResolvedLogOptions } from './log-options.interface.js';

/** A type of options with the defaults filled in: no value is `undefined`. */
export type InForce<T> = { readonly [K in keyof T]-?: Exclude<T[K], undefined> };

/** {@link AdminOptions} with the defaults and the environment applied. */
export interface ResolvedAdminOptions {
  readonly port: number;
  readonly host: string;
  /** Not enumerable, so that the token is not shown when the options are printed. `undefined` = no token. */
  readonly token: string | undefined;
}

/** {@link ClusterOptions} with the defaults and the environment applied. Frozen. */
export interface ResolvedClusterOptions extends Pick<
  InForce<ClusterOptions>,
  'balancing' | 'expose' | 'rebalance' | 'readyTimeoutMs' | 'watchdog'
> {
  readonly address: ListenAddress;
  /** Whether the user gave the address. Otherwise it is the default, which only an app with an HTTP server uses. */
  readonly addressGiven: boolean;
  /** Number of workers at the start; 0 = the app runs in this process, without a cluster. */
  readonly workers: number;
  /** `Infinity` = no worker is killed because it does not answer. */
  readonly hangTimeoutMs: number;
  /** `Infinity` = no limit. */
  readonly memory: InForce<MemoryOptions>;
  /** `Infinity` = never. */
  readonly recycle: InForce<RecycleOptions>;
  readonly reload: InForce<ReloadOptions>;
  readonly shutdown: InForce<ShutdownOptions>;
  /** `undefined` = no admin listener. */
  readonly admin: ResolvedAdminOptions | undefined;
  readonly on: ClusterEventListeners | undefined;
  /** `undefined` = no control socket. */
  readonly control: { readonly path: string | undefined } | undefined;
  /** `undefined` = the name of the app. */
  readonly name: string | undefined;
  readonly log: ResolvedLogOptions;
  readonly warnings: ResolvedWarningOptions;
}

/** The address to listen on: a port of a host (`undefined` = all interfaces), or a unix socket. */
export type ListenAddress =
  | { readonly kind: 'tcp'; readonly port: number; readonly host: string | undefined }
  | { readonly kind: 'unix'; readonly path: string };
