import { type CallFrame, CallTree, MAX_CALLERS, MAX_FUNCTIONS, nameOf } from './call-tree.js';

interface HeapNode {
  readonly id: number;
  readonly callFrame: CallFrame;
  readonly children: readonly HeapNode[];
}

export interface HeapProfile {
  readonly head: HeapNode;
  readonly samples: readonly {
    readonly size: number;
    readonly nodeId: number;
    /** The number of the sample in the order of allocation. Collected objects have numbers too. */
    readonly ordinal: number;
  }[];
}

/** A function that has allocated objects which are still held. */
export interface Allocator {
  readonly function: string;
  readonly heldBytes: number;
  /** The part of `heldBytes` that was allocated in the first half of the profile. */
  readonly olderBytes: number;
  /** Whether the function belongs to the app, not to Node or a package. */
  readonly isOfApp: boolean;
  /** The functions of the app that called this function, directly or not, innermost first. */
  readonly calledBy: readonly string[];
}

export interface HeapSummary {
  readonly heldBytes: number;
  readonly olderBytes: number;
  readonly functions: readonly Allocator[];
}

/**
 * Finds the functions that allocated most of the old objects that are still held. A leak keeps its
 * old objects, and a full cache drops its old objects. So the age of the held objects tells a leak
 * from a cache.
 */
export function summarizeHeap({ head, samples }: HeapProfile): HeapSummary {
  const tree = treeOf(head);
  const half = samples.reduce((last, { ordinal }) => Math.max(last, ordinal), 0) / 2;
  const found = new Map<string, { -readonly [Key in keyof Allocator]: Allocator[Key] }>();
  for (const { nodeId, size, ordinal } of samples) {
    const frame = tree.frame(nodeId);
    if (frame === undefined) continue;
    const [nearest, ...calledBy] = tree.appFunctions(nodeId);
    const name = nearest ?? nameOf(frame);
    const older = ordinal <= half ? size : 0;
    const before = found.get(name);
    if (before === undefined) {
      const callers = calledBy.slice(0, MAX_CALLERS);
      found.set(name, {
        function: name,
        heldBytes: size,
        olderBytes: older,
        isOfApp: nearest !== undefined,
        calledBy: callers,
      });
    } else {
      before.heldBytes += size;
      before.olderBytes += older;
      if (calledBy.length > before.calledBy.length)
        before.calledBy = calledBy.slice(0, MAX_CALLERS);
    }
  }
  const all = [...found.values()];
  return {
    heldBytes: all.reduce((sum, { heldBytes }) => sum + heldBytes, 0),
    olderBytes: all.reduce((sum, { olderBytes }) => sum + olderBytes, 0),
    functions: all
      .toSorted(
        (a, b) =>
          Number(holdsOld(b)) - Number(holdsOld(a)) ||
          b.olderBytes - a.olderBytes ||
          b.heldBytes - a.heldBytes,
      )
      .slice(0, MAX_FUNCTIONS),
  };
}

/** Whether a function of the app holds old objects. Node also holds objects of current requests. */
function holdsOld({ isOfApp, olderBytes }: Allocator): boolean {
  return isOfApp && olderBytes > 0;
}

function treeOf(head: HeapNode): CallTree {
  const tree = new CallTree();
  const open: { readonly node: HeapNode; readonly caller?: number }[] = [{ node: head }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { node, caller } = next;
    tree.add(node.id, node.callFrame, caller);
    for (const child of node.children) open.push({ node: child, caller: node.id });
  }
  return tree;
}

/** The lines of the summary for a terminal. */
export function describeHeap({ heldBytes, functions }: HeapSummary): readonly string[] {
  if (functions.length === 0)
    return ['Nothing that was allocated during the profile is still held.'];
  return [
    `About ${size(heldBytes)} of the memory allocated during the profile are still held.`,
    functions.some(holdsOld)
      ? 'A leak also holds memory allocated in the first half, a full cache does not:'
      : 'No function of the app holds memory of the first half. A small leak needs more --seconds:',
    '  first half      held  allocated by',
    ...functions.flatMap((each) => [
      `${size(each.olderBytes).padStart(12)}${size(each.heldBytes).padStart(10)}  ${each.function}`,
      ...each.calledBy.map((caller) => `${' '.repeat(24)}  called by ${caller}`),
    ]),
  ];
}

function size(bytes: number): string {
  return bytes < 1e6 ? `${Math.round(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
