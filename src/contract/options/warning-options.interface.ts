/** The names of all findings: things in an app that do not fit several workers. */
export const FINDING_NAMES = [
  'scheduled-jobs',
  'throttler',
  'cache',
  'socket-io',
  'cpu-bound-threads',
  'database-pool',
  'memory',
  'own-health',
  'own-metrics',
  'schema-synchronization',
  'sessions',
  'shutdown-hooks',
  'signal-listener',
] as const;

/** Name of a finding; the README of `@nestjs-cluster/tools` explains each name. */
export type FindingName = (typeof FINDING_NAMES)[number];

/** The last part of a warning, which says how to silence the warning. */
export function silencedBy(name: FindingName): string {
  return `warnings: { ignore: ['${name}'] } of bootstrap() silences this`;
}

/** Settings of the warnings about an app that does not fit several workers. */
export interface WarningOptions {
  /** Findings that are not shown, at the start and by the doctor. Default: none. */
  ignore?: readonly FindingName[] | undefined;
}

/** {@link WarningOptions} with the defaults filled in. */
export interface ResolvedWarningOptions {
  /** Whether the cluster logs the warnings when it starts. */
  readonly shown: boolean;
  readonly ignore: readonly FindingName[];
}
