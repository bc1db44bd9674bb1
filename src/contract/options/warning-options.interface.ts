/** The names of the findings: the parts of an app that do not work correctly in several workers. */
export const FINDING_NAMES = [
  // The start of a cluster warns of these.
  'scheduled-jobs',
  'throttler',
  'cache',
  'socket-io',
  'cpu-bound-threads',
  // `nestjs-cluster-tools doctor` also finds these.
  'sessions',
  'in-process-events',
  'web-socket-broadcast',
  'database-pool',
  'schema-synchronization',
  'own-health',
  'own-metrics',
  'memory',
  'signal-listener',
  'cpu-bound-inline',
  'warning',
] as const;

/** Name of a finding. The README of `@nestjs-cluster/tools` explains each name. */
export type FindingName = (typeof FINDING_NAMES)[number];

/** The last part of a warning, which says how to silence the warning. */
export function silencedBy(name: FindingName): string {
  return `warnings: { ignore: ['${name}'] } of bootstrap() silences this`;
}

/** Settings of the warnings about an app that is not ready for several workers. */
export interface WarningOptions {
  /** Findings that neither the start of a cluster nor `nestjs-cluster-tools doctor` shows. Default: none. */
  ignore?: readonly FindingName[] | undefined;
}

/** {@link WarningOptions} with the defaults filled in. */
export interface ResolvedWarningOptions {
  /** Whether the cluster logs the warnings when it starts. */
  readonly shown: boolean;
  readonly ignore: readonly FindingName[];
}
