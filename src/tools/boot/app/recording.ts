import type { CpuProfile } from '../../profiles/cpu-summary.js';

/** Environment variable with the path of the file to which the worker writes its {@link Recording}. */
export const RECORDING_VARIABLE = 'NESTJS_CLUSTER_BOOT_RECORDING';

/** The key of the global {@link BootStart}. */
export const BOOT_START = Symbol.for('nestjs-cluster.boot-start');

/** The phases of a start, in their order, with the text for each. */
export const PHASES = {
  node: "Node's own start",
  imports: 'imports, until NestFactory is called',
  container: "Nest's container, with all providers",
  hooks: 'onModuleInit and onApplicationBootstrap',
  setup: 'middleware, routes and the rest of createApp()',
  listen: 'listen',
} as const;
export type Phase = keyof typeof PHASES;

/** The begin of loading a CommonJS file, or with `null` the end, in ms since the process started. */
export type Load = readonly [atMs: number, file: string | null];

export interface HookTime {
  /** The class of the provider or controller, or the module itself. */
  readonly class: string;
  readonly module: string;
  readonly hook: 'onModuleInit' | 'onApplicationBootstrap';
  readonly ms: number;
}

/** The record of a start until the main file begins. Times are in ms since the process started. */
export interface BootStart {
  readonly preloadMs: number;
  readonly mainMs: number;
  /** Ends the recording. */
  stop(): Omit<Recording, 'phases' | 'hooks'>;
}

/** The record of a whole start, as the worker writes it. */
export interface Recording {
  readonly phases: Readonly<Record<Phase, number>>;
  readonly hooks: readonly HookTime[];
  readonly profile: CpuProfile & { readonly startTime: number };
  /** The start of the process on the clock of the profile. */
  readonly originUs: number;
  readonly loads: readonly Load[];
  /** Paths and URLs of all scripts. The same file may be in it by both. */
  readonly scripts: readonly string[];
}
