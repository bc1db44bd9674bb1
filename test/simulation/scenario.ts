import fc from 'fast-check';

/** How a worker behaves, from its fork to its exit. */
export interface Behaviour {
  readonly boot:
    | { readonly kind: 'ready'; readonly ms: number }
    | { readonly kind: 'dies'; readonly ms: number; readonly how: Death }
    | { readonly kind: 'reports'; readonly ms: number; readonly code: string | undefined }
    | { readonly kind: 'foreign'; readonly ms: number }
    | { readonly kind: 'stuck' }
    /** The process cannot be started, because descriptors or memory are missing. */
    | { readonly kind: 'none' };
  /** Whether the event loop is blocked during the boot, so that no signal handler runs. */
  readonly deaf: boolean;
  /** The fate of the worker, and how many ms after it was ready this comes. */
  readonly fate: { readonly kind: Fate; readonly afterMs: number };
  readonly pong: 'prompt' | 'late' | 'twice' | 'never';
  readonly threads: 'none' | 'fit' | 'unfit' | 'silent';
  readonly check: 'healthy' | 'ill' | 'silent' | 'twice';
  readonly drain: { readonly kind: 'ends' | 'fails' | 'hangs'; readonly ms: number };
  readonly debugged: boolean;
  /** Whether SIGKILL does not end the process, because it is in an uninterruptible system call. */
  readonly unkillable: boolean;
  /** Whether the process is above the soft memory limit from its start. */
  readonly large: boolean;
  /** How many ms a message to or from the worker takes. */
  readonly lagMs: number;
}

export type Death = 'exit-0' | 'exit-1' | 'SIGKILL' | 'SIGABRT' | 'SIGTERM' | 'SIGSEGV';

const FATES = [
  'dies',
  'killed',
  'hangs',
  'blocks',
  'blocks-long',
  'fatal',
  'leaves',
  'closes',
  'grows',
  'grows-far',
  'serves-enough',
  'breaks-channel',
  'asks-for-reload',
  'asks-to-scale',
  'asks-to-restart',
] as const;

export type Fate = 'lives' | (typeof FATES)[number];

/** The release that a reload finds on disk. */
export interface Deployment {
  /** Whether the script is missing. */
  readonly broken: boolean;
  /** The workers of the release end this many ms after they were ready. 0: they need not end. */
  readonly diesMs: number;
  /**
   * The place of its files: next to the previous release, over it, or alone (others are deleted).
   */
  readonly files: 'beside' | 'over' | 'alone';
}

/** A release without faults. */
export const WELL_DEPLOYED: Deployment = { broken: false, diesMs: 0, files: 'beside' };

/** An action of the operator, or an incident of the machine. */
export type Deed =
  | ({ readonly kind: 'reload' } & Deployment)
  | { readonly kind: 'scale'; readonly workers: number; readonly refused: boolean }
  /** The slot may not exist. */
  | { readonly kind: 'restart'; readonly slot: number }
  /** A service that all workers need fails, so that every ready worker ends. */
  | { readonly kind: 'outage' }
  /** The primary is suspended for a time, with or without its workers. */
  | { readonly kind: 'suspend'; readonly ms: number; readonly workersToo: boolean };

/** Options of the cluster. All other options have their defaults. */
export interface Options {
  readonly readyTimeoutMs: number;
  readonly hangTimeoutMs: number;
  readonly observeMs: number;
  readonly lameDuckMs: number;
  readonly drainTimeoutMs: number;
  readonly killTimeoutMs: number;
  readonly memory: boolean;
  readonly recycle: boolean;
}

/** Everything about a life of a cluster that is decided before the life begins. */
export interface Scenario {
  readonly workers: number;
  /** The seed of the core's own random numbers. */
  readonly seed: number;
  /** The behaviours of the first workers, in order of their forks. Later workers have no faults. */
  readonly behaviours: readonly Behaviour[];
  readonly deeds: readonly { readonly afterMs: number; readonly deed: Deed }[];
  /** The requests to stop. `afterMs` counts from the previous one, or from the beginning. */
  readonly stops: readonly { readonly afterMs: number; readonly bySignal: boolean }[];
  readonly options: Options;
  /** Whether the machine may be debugged. If so, the boot of a worker has no time limit. */
  readonly inspected: boolean;
  /** Whether the workers have jobs that only one of them may run. */
  readonly hasJobs: boolean;
  /** Whether some messages cannot be sent and the primary's own acceptors close late. */
  readonly sendFails: boolean;
}

/** A worker without faults. */
export const WELL: Behaviour = {
  boot: { kind: 'ready', ms: 300 },
  deaf: false,
  fate: { kind: 'lives', afterMs: 0 },
  pong: 'prompt',
  threads: 'fit',
  check: 'healthy',
  drain: { kind: 'ends', ms: 20 },
  debugged: false,
  unkillable: false,
  large: false,
  lagMs: 1,
};

/** Mostly draws the usual value. It is the first one, because fast-check shrinks to the first. */
function often<T>(weight: number, usual: T, ...others: readonly fc.Arbitrary<T>[]) {
  return fc.oneof(
    { weight, arbitrary: fc.constant(usual) },
    ...others.map((arbitrary) => ({ weight: 1, arbitrary })),
  );
}

const death = fc.constantFrom<Death>(
  'exit-1',
  'exit-0',
  'SIGKILL',
  'SIGABRT',
  'SIGTERM',
  'SIGSEGV',
);

const boot: fc.Arbitrary<Behaviour['boot']> = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.record({
      kind: fc.constant('ready' as const),
      ms: fc.constantFrom(300, 50, 1_000, 4_000),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('dies' as const),
      ms: fc.constantFrom(100, 0, 2_000),
      how: death,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('reports' as const),
      ms: fc.constantFrom(50, 700),
      code: often<string | undefined>(
        6,
        undefined,
        fc.constantFrom('CLUSTER_CONFIGURATION', 'EADDRINUSE'),
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom<Behaviour['boot']>(
      { kind: 'stuck' },
      { kind: 'foreign', ms: 50 },
      { kind: 'none' },
    ),
  },
);

const behaviour: fc.Arbitrary<Behaviour> = fc.record({
  boot,
  deaf: often(3, false, fc.constant(true)),
  fate: fc.record({
    kind: fc.oneof(
      { weight: 2, arbitrary: fc.constant<Fate>('lives') },
      { weight: 3, arbitrary: fc.constantFrom<Fate>(...FATES) },
    ),
    afterMs: fc.constantFrom(50, 0, 900, 3_000, 9_000, 25_000),
  }),
  pong: often(5, 'prompt', fc.constantFrom('late' as const, 'twice' as const, 'never' as const)),
  threads: often(3, 'fit', fc.constantFrom('none' as const, 'unfit' as const, 'silent' as const)),
  check: often(4, 'healthy', fc.constantFrom('twice' as const, 'ill' as const, 'silent' as const)),
  drain: fc.record({
    kind: often(3, 'ends', fc.constantFrom('fails' as const, 'hangs' as const)),
    ms: fc.constantFrom(20, 5, 400, 5_000),
  }),
  debugged: often(30, false, fc.constant(true)),
  large: often(8, false, fc.constant(true)),
  lagMs: often(3, 1, fc.constantFrom(0, 30)),
  unkillable: often(8, false, fc.constant(true)),
});

const deed: fc.Arbitrary<Deed> = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.record({
      kind: fc.constant('reload' as const),
      broken: often(6, false, fc.constant(true)),
      diesMs: often(3, 0, fc.constantFrom(50, 1_000, 3_000, 8_000)),
      files: often(3, 'beside', fc.constantFrom('over' as const, 'alone' as const)),
    }),
  },
  {
    weight: 9,
    arbitrary: fc.record({
      kind: fc.constant('scale' as const),
      workers: fc.integer({ min: 1, max: 6 }),
      refused: often(6, false, fc.constant(true)),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('restart' as const),
      slot: fc.integer({ min: 0, max: 4 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('outage' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('suspend' as const),
      ms: fc.constantFrom(300, 11_000, 15_000),
      workersToo: fc.boolean(),
    }),
  },
);

const options: fc.Arbitrary<Options> = fc.record({
  readyTimeoutMs: fc.constantFrom(30_000, 1_500),
  hangTimeoutMs: often(3, 10_000, fc.constantFrom(7_000, 30_000)),
  observeMs: often(3, 10_000, fc.constant(0)),
  lameDuckMs: often(3, 0, fc.constant(1_500)),
  drainTimeoutMs: often(3, 10_000, fc.constantFrom(0, 1_000)),
  killTimeoutMs: often(3, 2_000, fc.constant(300)),
  memory: fc.boolean(),
  recycle: fc.boolean(),
});

export const scenario: fc.Arbitrary<Scenario> = fc.record({
  workers: fc.oneof(
    { weight: 8, arbitrary: fc.integer({ min: 1, max: 4 }) },
    { weight: 1, arbitrary: fc.integer({ min: 5, max: 16 }) },
  ),
  seed: fc.nat(),
  behaviours: fc.array(behaviour, { maxLength: 32, size: 'max' }),
  deeds: fc.array(fc.record({ afterMs: fc.constantFrom(60, 0, 1, 400, 1_800, 5_000), deed }), {
    maxLength: 60,
    size: 'max',
  }),
  stops: often(
    6,
    [],
    fc.array(
      fc.record({
        afterMs: fc.constantFrom(30_000, 400, 0, 1, 3_000, 12_000),
        bySignal: often(3, true, fc.constant(false)),
      }),
      { minLength: 1, maxLength: 3 },
    ),
  ),
  options,
  inspected: often(20, false, fc.constant(true)),
  // New fields come last, so that a seed still draws the same values for the other fields.
  // `hasJobs` is rarely true, because the leases of a leader are many events.
  hasJobs: often(15, false, fc.constant(true)),
  sendFails: often(3, false, fc.constant(true)),
});
