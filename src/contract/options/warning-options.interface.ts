/** The names of all findings: things that go wrong, or are not needed, once an app runs in several workers. */
export const FINDING_NAMES = [
  'scheduled-jobs',
  'throttler',
  'cache',
  'sessions',
  'socket-io-adapter',
  'socket-io-polling',
  'in-process-events',
  'web-socket-broadcast',
  'self-restart',
  'database-pool',
  'schema-synchronization',
  'own-health',
  'own-metrics',
  'keep-alive',
  'memory',
  'signal-listener',
  'shutdown-hooks',
  'force-close-connections',
  'cpu-bound-inline',
  'cpu-bound-threads',
  'warning',
] as const;

/** Name of a finding of `nestjs-cluster doctor`; `docs/doctor.md` explains each name. */
export type FindingName = (typeof FINDING_NAMES)[number];

/** The last part of a warning, which says how to silence the warning. */
export function silencedBy(name: FindingName): string {
  return `warnings: { ignore: ['${name}'] } of bootstrap() silences this`;
}

/**
 * Settings of the warnings about an app that is not ready for several workers. The start of a
 * cluster and `nestjs-cluster doctor` show them.
 */
export interface WarningOptions {
  /** Findings that are not shown. Default: none. */
  ignore?: readonly FindingName[] | undefined;
}

/** {@link WarningOptions} with the defaults filled in. */
export interface ResolvedWarningOptions {
  /** Whether the cluster logs the warnings when it starts. */
  readonly shown: boolean;
  readonly ignore: readonly FindingName[];
}
