import { statSync } from 'node:fs';
import { relative } from 'node:path';
import { type Column, formatMs, formatTable } from '../control/view/table.js';
import { pathOf } from '../profiles/call-tree.js';
import { type HookTime, type Phase, PHASES, type Recording } from './app/recording.js';
import { attribute, moduleOf, type ModuleTime } from './attribution.js';

/** The report on the start of an app. */
export interface BootReport {
  /** The path of the file that was started, from the working directory. */
  readonly main: string;
  /** The version of Node. */
  readonly node: string;
  /** From the start of the process until it was ready. */
  readonly totalMs: number;
  readonly phases: Readonly<Record<Phase, number>>;
  /** Packages and the app's own files, slowest first. Names in parentheses belong to no module. */
  readonly modules: readonly ModuleReport[];
  /** The hooks that took more than 1 ms, slowest first. */
  readonly hooks: readonly HookTime[];
  /** The number of files, and their size. */
  readonly files: number;
  readonly bytes: number;
  /** The time until ready with a warm compile cache and without one; `null` if there is none. */
  readonly compileCache: { readonly withMs: number; readonly withoutMs: number } | null;
}

interface ModuleReport extends ModuleTime {
  readonly name: string;
  readonly files: number;
  readonly bytes: number;
}

const MIN_HOOK_MS = 1;

export function totalOf({ phases }: Pick<Recording, 'phases'>): number {
  return Object.values(phases).reduce((sum, ms) => sum + ms, 0);
}

/** The start that was ready first; `undefined` if there is none. */
export function fastestOf<R extends Pick<Recording, 'phases'>>(
  starts: readonly R[],
): R | undefined {
  return starts.toSorted((a, b) => totalOf(a) - totalOf(b))[0];
}

/** @param withoutMs the time until ready without a compile cache, if the recorded start had one. */
export function reportOf(script: string, recording: Recording, withoutMs?: number): BootReport {
  const directory = process.cwd();
  const found = new Map<string, { -readonly [Key in keyof ModuleReport]: ModuleReport[Key] }>();
  for (const [name, time] of attribute(recording, directory)) {
    found.set(name, { name, ...time, files: 0, bytes: 0 });
  }
  const all = { files: 0, bytes: 0 };
  for (const path of new Set(recording.scripts.map(pathOf))) {
    if (!path.startsWith('/')) continue; // part of Node
    const { size = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {};
    for (const sum of [all, found.get(moduleOf(path, directory))]) {
      if (sum === undefined) continue; // faster than a sample
      sum.files += 1;
      sum.bytes += size;
    }
  }
  const totalMs = totalOf(recording);
  return {
    main: relative(directory, script),
    node: process.version,
    totalMs,
    phases: recording.phases,
    modules: [...found.values()].toSorted((a, b) => b.selfMs - a.selfMs),
    hooks: recording.hooks.filter(({ ms }) => ms > MIN_HOOK_MS).toSorted((a, b) => b.ms - a.ms),
    ...all,
    compileCache: withoutMs === undefined ? null : { withMs: totalMs, withoutMs },
  };
}

const MODULES: readonly Column<ModuleReport>[] = [
  { title: 'self ms', value: ({ selfMs }) => formatMs(selfMs) },
  { title: 'with all it calls', value: ({ totalMs }) => formatMs(totalMs) },
  { title: 'files', value: ({ files }) => String(files || '') },
  { title: 'kB', value: ({ files, bytes }) => (files ? (bytes / 1e3).toFixed(0) : '') },
  { title: 'package or file', value: ({ name }) => name, left: true },
];

/** The report as text. */
export function pageOf(report: BootReport): string {
  const { main, node, totalMs, phases, modules, hooks, files, bytes } = report;
  const begun = `${main} was ready after ${formatMs(totalMs)} ms, with Node ${node}`;
  return [
    report.compileCache === null ? begun : `${begun} and a warm compile cache`,
    ...(phases.container > 0
      ? []
      : ['Nest is in a bundle, so the time until listen is one phase.']),
    ...times(Object.entries(PHASES).map(([name, text]) => [phases[name as Phase], text])),
    '',
    ...formatTable(MODULES, modules),
    ...times(
      hooks.map(({ ms, module, hook, ...each }) => [ms, `${each.class}.${hook}() (${module})`]),
    ),
    '',
    `${files} files with ${(bytes / 1e6).toFixed(1)} MB were loaded.`,
    cacheLine(report.compileCache),
    '',
  ].join('\n');
}

function times(rows: readonly (readonly [ms: number, text: string])[]): string[] {
  return rows.length === 0
    ? []
    : ['', ...rows.map(([ms, text]) => `${formatMs(ms).padStart(7)}  ${text}`)];
}

function cacheLine(cache: BootReport['compileCache']): string {
  if (cache === null) {
    return 'There was no compile cache: Node has one since 22.8, unless NODE_DISABLE_COMPILE_CACHE is set.';
  }
  const { withMs, withoutMs } = cache;
  const saved = withMs < withoutMs ? `saves ${formatMs(withoutMs - withMs)} ms` : 'saved nothing';
  return `The compile cache ${saved}: without it, the app was ready after ${formatMs(withoutMs)} ms.`;
}
