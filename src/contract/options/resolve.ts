import * as v from 'valibot';
import { availableWorkers } from '../process/machine.js';
import { type ClusterOptions, clusterOptions } from './bootstrap.js';
import { type FindingName, type LogFormat, logFormat } from './log.js';
import { offloadVariables } from './offload-variables.js';
import { refuseConflicts } from './refuse-conflicts.js';
import { MAX_WORKERS, overridden, portFromText, readVariables, validate } from './schema.js';

/** A type of options with the defaults filled in: no value is `undefined`. */
export type InForce<T> = { readonly [K in keyof T]-?: Exclude<T[K], undefined> };

/** The address to listen on: a port of a host (`undefined` = all interfaces), or a unix socket. */
export type ListenAddress =
  | { readonly kind: 'tcp'; readonly port: number; readonly host: string | undefined }
  | { readonly kind: 'unix'; readonly path: string };

type Checked = v.InferOutput<typeof clusterOptions>;

/** {@link ClusterOptions} with the defaults and the environment applied. Frozen. */
export interface ResolvedClusterOptions extends Omit<
  Checked,
  'port' | 'host' | 'path' | 'workers' | 'hangTimeoutMs' | 'admin' | 'control' | 'warnings'
> {
  readonly address: ListenAddress;
  /** Whether the user gave the address. Otherwise it is the default, which only an app with an HTTP server uses. */
  readonly addressGiven: boolean;
  /** Number of workers at the start; 0 = the app runs in this process, without a cluster. */
  readonly workers: number;
  /** `Infinity` = no worker is killed because it does not answer. */
  readonly hangTimeoutMs: number;
  /** `undefined` = no admin listener. */
  readonly admin: ResolvedAdminOptions | undefined;
  /** `undefined` = no control socket. */
  readonly control: Exclude<Checked['control'], false> | undefined;
  readonly warnings: {
    /** Whether the cluster logs the warnings when it starts. */
    readonly shown: boolean;
    readonly ignore: readonly FindingName[];
  };
}

/** `AdminOptions` with the defaults and the environment applied. */
export interface ResolvedAdminOptions {
  readonly port: number;
  readonly host: string;
  /** Not enumerable, so that the token is not shown when the options are printed. `undefined` = no token. */
  readonly token: string | undefined;
}

/**
 * Checks the options of `bootstrap()`, fills in the default of each key that is `undefined`, and
 * lets the environment override the options.
 *
 * @throws ClusterConfigurationError that names each key, the value seen and what is allowed.
 */
export function resolveOptions(
  input: ClusterOptions = {},
  env: NodeJS.ProcessEnv = process.env,
  autoWorkers: () => number = availableWorkers,
): ResolvedClusterOptions {
  validate(clusterOptions, input, 'options'); // also options that a variable overrides
  readVariables(offloadVariables, env);
  const { admin, ...variables } = readVariables(clusterOptions, env) as Variables;
  const opensAdmin = admin && (input.admin !== undefined || admin.port !== undefined);
  const given = overridden(input, { ...variables, ...(opensAdmin && { admin }) });
  const { port, host, path, ...options } = validate(clusterOptions, given, 'options');
  const { workers, warnings } = options;
  const resolved: ResolvedClusterOptions = Object.freeze({
    ...options,
    address: Object.freeze(
      path === undefined
        ? { kind: 'tcp', port: input.port === undefined ? (portIn(env) ?? port) : port, host }
        : { kind: 'unix', path },
    ),
    // The variable PORT does not count as a given address: a host may set it for every program.
    addressGiven: (input.port ?? host ?? path) !== undefined,
    workers: workers === 'auto' ? Math.min(autoWorkers(), MAX_WORKERS) : workers,
    hangTimeoutMs: options.hangTimeoutMs || Infinity,
    control: options.control || undefined,
    admin: options.admin && resolveAdmin(options.admin),
    warnings: Object.freeze({ shown: warnings !== false, ignore: warnings ? warnings.ignore : [] }),
  });
  refuseConflicts(input, resolved);
  return resolved;
}

/** The overrides that open the admin listener: a port is needed for it. */
type Variables = { readonly admin?: { readonly port?: number } };

function resolveAdmin({ port, host, token }: NonNullable<Checked['admin']>): ResolvedAdminOptions {
  const admin = Object.defineProperty({ port, host }, 'token', { value: token || undefined });
  return Object.freeze(admin as ResolvedAdminOptions);
}

/**
 * The value of `PORT`, the variable by which hosts and process managers give a program its port. It
 * is the default of the option `port`. If the option is set, the variable is not read, so a wrong
 * value does no harm then.
 *
 * @throws ClusterConfigurationError if the value is not a port.
 */
function portIn(env: NodeJS.ProcessEnv): number | undefined {
  const schema = v.object({ PORT: v.optional(portFromText) });
  return validate(schema, { PORT: env['PORT'] || undefined }, 'environment').PORT;
}

/** The log format for the line about wrong options: from the environment, else from the options, else `text`. */
export function logFormatIn(input: unknown, env: NodeJS.ProcessEnv = process.env): LogFormat {
  const { log } = (input ?? {}) as ClusterOptions;
  const given: unknown[] = [env['CLUSTER_LOG_FORMAT'], log?.format];
  return given.find((format): format is LogFormat => v.is(logFormat, format)) ?? 'text';
}
