import fc from 'fast-check';

/** How a worker behaves, from its fork to its exit. */
export interface Behaviour {
  readonly boot:
    | { readonly kind: 'ready'; readonly ms: number }
    | { readonly kind: 'dies'; readonly ms: number; readonly how: Death }
    | { readonly kind: 'reports'; readonly ms: number; readonly code: string | undefined }
    | { readonly kind: 'foreign'; readonly ms: number }
    | { readonly kind: 'stuck' }
    /** For want of descriptors or memory there is no process. */
    | { readonly kind: 'none' };
  /** While it boots its event loop is blocked: it runs no handler of a signal. */
  readonly deaf: boolean;
  /** What becomes of it, after it has been ready for a time. */
  readonly fate: { readonly kind: Fate; readonly afterMs: number };
  readonly pong: 'prompt' | 'late' | 'twice' | 'never';
  readonly threads: 'none' | 'fit' | 'unfit' | 'silent';
  readonly check: 'healthy' | 'ill' | 'silent' | 'twice';
  readonly drain: { readonly kind: 'ends' | 'fails' | 'hangs'; readonly ms: number };
  readonly debugged: boolean;
  /** It does not end by SIGKILL: it has been in a system call since. */
  readonly unkillable: boolean;
  /** It holds too much from the start. */
  readonly large: boolean;
  /** What a message to it or from it takes. */
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
  'aborts',
  'leaves',
  'closes',
  'grows',
  'grows-far',
  'serves-enough',
  'wants-to-go',
  'breaks-channel',
  'asks-for-reload',
  'asks-to-scale',
  'asks-to-restart',
] as const;

export type Fate = 'lives' | (typeof FATES)[number];

/** What a reload finds. */
export interface Deployment {
  /** The script is not there. */
  readonly broken: boolean;
  /** Workers of the release end so long after they were ready; 0 = they do as their behaviours say. */
  readonly diesMs: number;
  /** Beside the release before, over it, or alone since all the others were cleaned away. */
  readonly files: 'beside' | 'over' | 'alone';
}

/** A release without faults. */
export const WELL_DEPLOYED: Deployment = { broken: false, diesMs: 0, files: 'beside' };

/** What an operator, or the machine, does. */
export type Deed =
  | ({ readonly kind: 'reload' } & Deployment)
  | { readonly kind: 'scale'; readonly workers: number; readonly refused: boolean }
  /** The slot may not be there. */
  | { readonly kind: 'restart'; readonly slot: number }
  /** What all workers need goes away: whoever serves ends by that. */
  | { readonly kind: 'outage' }
  /** The primary stands still, with or without its workers. */
  | { readonly kind: 'suspend'; readonly ms: number; readonly workersToo: boolean };

/** Options of the cluster; the others are what they are by default. */
export interface Options {
  readonly readyTimeoutMs: number;
  readonly heartbeatMs: number;
  readonly hungAfterMs: number;
  readonly stableAfterMs: number;
  readonly backoffMs: number;
  readonly maxBackoffMs: number;
  readonly maxFailures: number;
  readonly canaryMs: number;
  readonly observeMs: number;
  readonly lameDuckMs: number;
  readonly drainTimeoutMs: number;
  readonly killTimeoutMs: number;
  readonly memory: boolean;
  readonly recycle: boolean;
}

/** A life of a cluster, as far as it is decided before it begins. */
export interface Scenario {
  readonly workers: number;
  /** Of the core's own random numbers. */
  readonly seed: number;
  /** Of the first workers, in the order of their forks; later ones live well. */
  readonly behaviours: readonly Behaviour[];
  readonly deeds: readonly { readonly afterMs: number; readonly deed: Deed }[];
  /** Each asks for the end, the first after a time from the beginning, any other after the one before. */
  readonly stops: readonly { readonly afterMs: number; readonly bySignal: boolean }[];
  readonly options: Options;
  /** The machine may be debugged: no worker has a time to come up in. */
  readonly inspected: boolean;
  /** Its workers have something that one alone is to run. */
  readonly hasJobs: boolean;
  /** Some messages cannot be sent, and the primary's own acceptors end late. */
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

/** The first is what a failure is shrunk to. */
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
  // Most events would be heartbeats else.
  heartbeatMs: often(6, 4_000, fc.constantFrom(1_000, 6_000)),
  hungAfterMs: often(3, 10_000, fc.constantFrom(7_000, 30_000)),
  stableAfterMs: fc.constantFrom(30_000, 4_000),
  backoffMs: often(3, 100, fc.constantFrom(20, 1_000)),
  maxBackoffMs: often(2, 15_000, fc.constantFrom(1_000, 5_000)),
  maxFailures: often(3, 5, fc.constantFrom(1, 2)),
  canaryMs: often(3, 1_000, fc.constant(0)),
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
  // Last: what is drawn before stays what it was. A leader has many leases.
  hasJobs: often(15, false, fc.constant(true)),
  sendFails: often(3, false, fc.constant(true)),
});
