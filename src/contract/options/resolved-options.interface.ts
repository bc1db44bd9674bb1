import type { ClusterEventListeners } from '../events/index.js';
import type {
  BootLogs,
  ClusterOptions,
  HeartbeatOptions,
  MemoryOptions,
  RecycleOptions,
  ReloadOptions,
  RestartOptions,
  ShutdownOptions,
  WatchdogOptions,
} from './cluster-options.interface.js';
import type { ResolvedDoctorOptions } from './doctor-options.interface.js';
import type { ResolvedLogOptions } from './log-options.interface.js';

/** Options with every value in force. */
export type InForce<T> = { readonly [K in keyof T]-?: Exclude<T[K], undefined> };

/** {@link AdminOptions} with every value in force. */
export interface ResolvedAdminOptions {
  readonly port: number;
  readonly host: string;
  /** Not enumerable, so that the token does not appear where options are shown. `undefined` = no token. */
  readonly token: string | undefined;
}

/** Every option with its value in force. Frozen. */
export interface ResolvedClusterOptions extends Pick<
  InForce<ClusterOptions>,
  'balancing' | 'expose' | 'rebalance' | 'readyTimeoutMs'
> {
  readonly address: ListenAddress;
  /** Whether the user gave the address; otherwise it is the default, for an app with an HTTP server. */
  readonly addressGiven: boolean;
  /** 0 = standalone. */
  readonly workers: number;
  readonly restart: InForce<RestartOptions>;
  /** `timeoutMs` is `Infinity` where `heartbeat` is `false`. */
  readonly heartbeat: InForce<HeartbeatOptions>;
  readonly watchdog: InForce<WatchdogOptions> | false;
  /** `Infinity` = no limit. */
  readonly memory: InForce<MemoryOptions>;
  /** `Infinity` = never. */
  readonly recycle: InForce<RecycleOptions>;
  readonly reload: InForce<ReloadOptions>;
  readonly shutdown: InForce<ShutdownOptions>;
  /** `undefined` = no such listener. */
  readonly admin: ResolvedAdminOptions | undefined;
  readonly on: ClusterEventListeners | undefined;
  /** `undefined` = no such socket. */
  readonly control: { readonly path: string | undefined } | undefined;
  /** `undefined` = the name of the app. */
  readonly name: string | undefined;
  readonly log: ResolvedLogOptions;
  readonly doctor: ResolvedDoctorOptions;
  readonly bootLogs: BootLogs;
}

/** The address to listen on: a port of a host (`undefined` = all interfaces), or a unix socket. */
export type ListenAddress =
  | { readonly kind: 'tcp'; readonly port: number; readonly host: string | undefined }
  | { readonly kind: 'unix'; readonly path: string };
