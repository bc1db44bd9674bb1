import { fileURLToPath } from 'node:url';
import { oneLine } from '../output.js';

/** A function in V8's profiles. */
export interface CallFrame {
  readonly functionName: string;
  readonly url: string;
  /** The line, counted from 0. It is -1 if V8 does not know the line. */
  readonly lineNumber: number;
  readonly columnNumber: number;
}

export interface ProfileNode {
  readonly id: number;
  readonly callFrame: CallFrame;
  readonly children?: readonly number[];
  /** Samples by line number, from 1. */
  readonly positionTicks?: readonly { readonly line: number; readonly ticks: number }[];
}

/** A CPU profile, as V8's inspector writes it. */
export interface CpuProfile {
  readonly nodes: readonly ProfileNode[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** The duration of a sample in ms: the time until the next sample. */
export function sampleMs({ timeDeltas }: CpuProfile, index: number): number {
  return Math.max(0, timeDeltas[index + 1] ?? 0) / 1_000;
}

/** Returns a function that gives the call path of a node, from its own frame to the root. */
export function pathsOf({ nodes }: CpuProfile): (id: number) => readonly CallFrame[] {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const callers = new Map(nodes.flatMap(({ id, children = [] }) => children.map((c) => [c, id])));
  return (id) => {
    const path: CallFrame[] = [];
    for (let at: number | undefined = id; at !== undefined; at = callers.get(at)) {
      path.push(byId.get(at)!.callFrame);
    }
    return path;
  };
}

/** Whether a function belongs to the app, not to Node or a package. */
export function isOfApp({ url }: CallFrame): boolean {
  return url !== '' && !url.startsWith('node:') && !url.includes('/node_modules/');
}

export function nameOf({ functionName }: CallFrame): string {
  return oneLine(functionName || '(anonymous)');
}

/** Converts a file URL to its path. Returns other URLs unchanged. */
export function pathOf(url: string): string {
  try {
    return url.startsWith('file:') ? fileURLToPath(url) : url;
  } catch {
    return url;
  }
}
