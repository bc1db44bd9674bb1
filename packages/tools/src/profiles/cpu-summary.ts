import { type CallFrame, CallTree, MAX_CALLERS, MAX_FUNCTIONS, nameOf } from './call-tree.js';

export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: CallFrame;
    readonly children?: readonly number[];
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** A function and the time spent in its own code, without the functions that it called. */
export interface HotFunction {
  readonly function: string;
  readonly ms: number;
  /** The functions of the app that called this function, directly or not, innermost first. */
  readonly calledBy: readonly string[];
}

export interface CpuSummary {
  readonly ms: number;
  readonly busyMs: number;
  readonly functions: readonly HotFunction[];
}

export function callTreeOf({ nodes }: Pick<CpuProfile, 'nodes'>): CallTree {
  const callers = new Map(nodes.flatMap(({ id, children = [] }) => children.map((c) => [c, id])));
  const tree = new CallTree();
  for (const { id, callFrame } of nodes) tree.add(id, callFrame, callers.get(id));
  return tree;
}

/** The time of a sample in ms: that until the next sample. */
export function sampleMs({ timeDeltas }: Pick<CpuProfile, 'timeDeltas'>, index: number): number {
  return Math.max(0, timeDeltas[index + 1] ?? 0) / 1_000;
}

/** Finds the functions whose own code took most of the time. */
export function summarizeCpu(profile: CpuProfile): CpuSummary {
  const tree = callTreeOf(profile);
  const byNode = new Map<number, number>();
  for (const [index, id] of profile.samples.entries()) {
    byNode.set(id, (byNode.get(id) ?? 0) + sampleMs(profile, index));
  }

  let totalMs = 0;
  let busyMs = 0;
  const found = new Map<string, { -readonly [Key in keyof HotFunction]: HotFunction[Key] }>();
  // Starts with the longest node. If a function has several nodes, the callers of the longest node are shown.
  for (const [id, ms] of [...byNode].toSorted(([, a], [, b]) => b - a)) {
    const frame = tree.frame(id);
    if (frame === undefined) continue;
    totalMs += ms;
    if (frame.functionName === '(idle)') continue;
    busyMs += ms;
    const name = nameOf(frame);
    const calledBy = tree.appFunctions(id).filter((caller) => caller !== name);
    // A function of Node or JavaScript gets one entry for each function of the app that calls it.
    const key = `${name} ${calledBy[0] ?? ''}`;
    const before = found.get(key);
    if (before !== undefined) before.ms += ms;
    else found.set(key, { function: name, ms, calledBy: calledBy.slice(0, MAX_CALLERS) });
  }
  return {
    ms: totalMs,
    busyMs,
    functions: [...found.values()].toSorted((a, b) => b.ms - a.ms).slice(0, MAX_FUNCTIONS),
  };
}

/** The lines of the summary for a terminal. */
export function describeCpu({ ms, busyMs, functions }: CpuSummary): readonly string[] {
  if (functions.length === 0) return ['The worker had nothing to do.'];
  return [
    `It was busy for ${seconds(busyMs)} of ${seconds(ms)}, most of it in:`,
    ...functions.flatMap((each) => [
      `${Math.round((each.ms / busyMs) * 100)} %`.padStart(6) +
        `${seconds(each.ms)}  `.padStart(10) +
        each.function,
      ...each.calledBy.map((caller) => `${' '.repeat(16)}  called by ${caller}`),
    ]),
  ];
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(ms < 1_000 ? 2 : 1)} s`;
}
