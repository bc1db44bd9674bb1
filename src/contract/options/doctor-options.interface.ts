/** Things that go wrong, or are not needed, once an app runs in several workers. */
export const FINDING_NAMES = [
  'scheduled-jobs',
  'throttler',
  'cache',
  'sessions',
  'socket-io-adapter',
  'socket-io-polling',
  'in-process-events',
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
  'cpu-bound-parameter',
  'cpu-bound-return',
  'cpu-bound-context',
  'cpu-bound-threads',
  'warning',
] as const;

/** Name of something that a doctor finds in an app; `docs/doctor.md` says what each one means. */
export type FindingName = (typeof FINDING_NAMES)[number];

/** The end of a warning that can be silenced. */
export function silencedBy(name: FindingName): string {
  return `doctor: { ignore: ['${name}'] } of bootstrap() silences this`;
}

/** Settings of the warnings about an app that is not ready for several workers: at the start, and by `nestjs-cluster doctor`. */
export interface DoctorOptions {
  /** Findings that are not shown. Default: none. */
  ignore?: readonly FindingName[] | undefined;
}

/** {@link DoctorOptions} in force. */
export interface ResolvedDoctorOptions {
  /** Whether the start of the cluster warns. */
  readonly warnings: boolean;
  readonly ignore: readonly FindingName[];
}
