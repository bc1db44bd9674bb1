import { relative } from 'node:path';
import {
  type CallFrame,
  type CpuProfile,
  isOfApp,
  nameOf,
  pathOf,
  pathsOf,
  sampleMs,
} from './profile.js';
import { type Kind, KindsOfWork, mayWait } from './remedies.js';

const INSTALLED = '/node_modules/';

/** A function of the app, or a package or file whose code ran outside the app's functions. */
export interface Owner {
  readonly name: string;
  /** The function's definition, as `path:line:column`; `null` for a package. */
  readonly place: string | null;
}

/** A period in which the event loop ran only one handler. */
export interface Slice {
  ms: number;
  /** Time spent in the garbage collector. */
  garbageMs: number;
  /** Time per owner, excluding garbage collection. */
  readonly parts: Map<Owner, number>;
}

/** The work of all profiled event loops. */
export interface Work {
  ms: number;
  busyMs: number;
  readonly slices: Slice[];
  /** By name and place, so that the times of a function are summed over all workers. */
  readonly owners: Map<string, Owner>;
  readonly kinds: Map<Owner, Map<Kind, number>>;
}

/** A node of the call tree. */
interface Site {
  /** The innermost app function on the path to the node. */
  readonly owner: Owner | undefined;
  /** The outermost app function on that path. */
  readonly entry: Owner | undefined;
  readonly kinds: readonly (readonly [Kind, number])[];
}

/**
 * V8 takes a sample every millisecond. In a longer gap the process had no CPU, so the rest of the gap
 * is not attributed. The exception is a call that waits for the kernel.
 */
const MAX_GAP_MS = 4;

const IDLE = '(idle)';
const GARBAGE = '(garbage collector)';

export function noWork(): Work {
  return { ms: 0, busyMs: 0, slices: [], owners: new Map(), kinds: new Map() };
}

/**
 * Adds a worker's profile. Each sample counts for the innermost app function on its call path. The
 * function's time includes what it calls. Consecutive samples with the same outermost function form
 * one slice.
 */
export function addProfile(work: Work, profile: CpuProfile): void {
  const pathFrom = pathsOf(profile);
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const kindsOfWork = new KindsOfWork();
  const sites = new Map<number, Site>();
  let slice: Slice | undefined;
  let before: Site | undefined;
  for (const [index, id] of profile.samples.entries()) {
    const ms = sampleMs(profile, index);
    work.ms += ms;
    const { callFrame, positionTicks = [] } = nodes.get(id)!;
    if (callFrame.functionName === IDLE) {
      slice = before = undefined;
      continue;
    }
    const known = sites.get(id) ?? siteOf(work, pathFrom(id), positionTicks, kindsOfWork);
    sites.set(id, known);
    const isGarbage = callFrame.functionName === GARBAGE;
    const site = isGarbage ? (before ?? known) : known;
    const counted = mayWait(site.kinds[0]![0]) ? ms : Math.min(ms, MAX_GAP_MS);
    work.busyMs += counted;
    if (slice === undefined || site.entry !== before?.entry) {
      slice = { ms: 0, garbageMs: 0, parts: new Map() };
      work.slices.push(slice);
    }
    before = site;
    slice.ms += counted;
    if (site.owner === undefined) continue;
    if (isGarbage) {
      slice.garbageMs += counted;
      continue;
    }
    add(slice.parts, site.owner, counted);
    const kinds = work.kinds.get(site.owner)!;
    for (const [kind, share] of site.kinds) add(kinds, kind, counted * share);
  }
}

function siteOf(
  work: Work,
  path: readonly CallFrame[],
  ticks: readonly { readonly line: number; readonly ticks: number }[],
  kindsOfWork: KindsOfWork,
): Site {
  const inner = path.findIndex(isOfApp);
  const kinds = kindsOfWork.of(inner < 0 ? path : path.slice(0, inner + 1), ticks);
  if (inner >= 0) {
    const ownerOf = (frame: CallFrame): Owner => {
      const { url, lineNumber, columnNumber } = frame;
      return known(work, nameOf(frame), `${pathOf(url)}:${lineNumber + 1}:${columnNumber + 1}`);
    };
    return { owner: ownerOf(path[inner]!), entry: ownerOf(path.findLast(isOfApp)!), kinds };
  }
  const file = path.find(({ url }) => /^(?:file:|\/)/.test(url));
  const owner = file && known(work, moduleOf(pathOf(file.url)), null);
  return { owner, entry: owner, kinds };
}

function known({ owners, kinds }: Work, name: string, place: string | null): Owner {
  const key = `${name} ${place}`;
  const before = owners.get(key);
  if (before !== undefined) return before;
  const owner = { name, place };
  owners.set(key, owner);
  kinds.set(owner, new Map());
  return owner;
}

function add<K>(sums: Map<K, number>, key: K, ms: number): void {
  sums.set(key, (sums.get(key) ?? 0) + ms);
}

/** The package of a file, or the path of an app file. */
function moduleOf(path: string): string {
  const installed = path.lastIndexOf(INSTALLED);
  if (installed < 0) return relative(process.cwd(), path);
  const [first = '', second = ''] = path.slice(installed + INSTALLED.length).split('/');
  return first.startsWith('@') ? `${first}/${second}` : first;
}
