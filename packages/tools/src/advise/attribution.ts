import { relative } from 'node:path';
import { OWN_DIRECTORY } from '../../contract/process/own-directory.js';
import type { AppMethod, MethodProfile } from '../../contract/snapshot/index.js';
import { type CallTree, isOfApp, pathOf } from '../profiles/call-tree.js';
import { callTreeOf, type CpuProfile, sampleMs } from '../profiles/cpu-summary.js';
import { CodeMap, type ScriptFrame } from './code-map.js';
import { type Kind, KindsOfWork, mayWait } from './remedies.js';

const INSTALLED = '/node_modules/';

/** A CPU profile as V8's inspector makes it. */
export interface InspectorProfile extends CpuProfile {
  readonly nodes: readonly (CpuProfile['nodes'][number] & {
    readonly callFrame: ScriptFrame;
    readonly positionTicks?: readonly { readonly line: number; readonly ticks: number }[];
  })[];
}

/** A method of the app; or a package or file whose code ran without a method of the app. */
export interface Owner {
  readonly name: string;
  readonly method: AppMethod | undefined;
  /** The place of the method, as `path:line:column`. */
  readonly place: string | undefined;
}

/** A time in which the event loop ran one handler, and so nothing else. */
export interface Slice {
  ms: number;
  /** The time of the garbage collector in it. */
  garbageMs: number;
  /** The time of each owner in it, without the garbage collector. */
  readonly parts: Map<Owner, number>;
}

/** The work of the event loops in all windows. */
export interface Work {
  ms: number;
  busyMs: number;
  readonly slices: Slice[];
  /** By name, so that the same method counts as one in all workers. */
  readonly owners: Map<string, Owner>;
  readonly kinds: Map<Owner, Map<Kind, number>>;
}

/** A node of the call tree. */
interface Site {
  /** The innermost method of the app on the way to the node. */
  readonly owner: Owner | undefined;
  /** The outermost method, or the same as `owner` if there is none. */
  readonly entry: Owner | undefined;
  readonly kinds: readonly (readonly [Kind, number])[];
}

/**
 * V8 takes a sample each millisecond. After a longer gap, the process had no CPU, and the rest of
 * the gap counts for nobody. Only a call that waits for the kernel takes so long without a sample.
 */
const MAX_GAP_MS = 4;

const IDLE = '(idle)';
const GARBAGE = '(garbage collector)';

export function noWork(): Work {
  return { ms: 0, busyMs: 0, slices: [], owners: new Map(), kinds: new Map() };
}

/**
 * Adds a window to the work. A sample counts for the innermost method of the app on its call path,
 * with all that the method called. Consecutive samples with the same outermost method are one slice.
 */
export function addWindow(work: Work, { list, places, ...recorded }: MethodProfile): void {
  const profile = recorded.profile as InspectorProfile;
  const tree = callTreeOf(profile);
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const look = { work, tree, code: new CodeMap({ list, places }), kinds: new KindsOfWork() };
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
    const known = sites.get(id) ?? siteOf(look, id, positionTicks);
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

interface Look {
  readonly work: Work;
  readonly tree: CallTree;
  readonly code: CodeMap;
  readonly kinds: KindsOfWork;
}

function siteOf(
  { work, tree, code, kinds }: Look,
  id: number,
  ticks: readonly { readonly line: number; readonly ticks: number }[],
): Site {
  const path = [...tree.pathFrom(id)] as ScriptFrame[];
  const methods = path.map((frame) => (isOfApp(frame) ? code.methodOf(frame) : undefined));
  const inner = methods.findIndex((method) => method !== undefined);
  const spent = kinds.of(inner < 0 ? path : path.slice(0, inner + 1), ticks);
  const ownerAt = (index: number): Owner => {
    const { url, lineNumber, columnNumber } = path[index]!;
    const method = methods[index]!;
    const place = `${pathOf(url)}:${lineNumber + 1}:${columnNumber + 1}`;
    return known(work, method.name, method, place);
  };
  if (inner >= 0) {
    const outer = methods.findLastIndex((method) => method !== undefined);
    return { owner: ownerAt(inner), entry: ownerAt(outer), kinds: spent };
  }
  const file = path.find(({ url }) => /^(?:file:|\/)/.test(url));
  const name = file && moduleOf(pathOf(file.url));
  const owner = name === undefined ? undefined : known(work, name, undefined, undefined);
  return { owner, entry: owner, kinds: spent };
}

function known(
  { owners, kinds }: Work,
  name: string,
  method: AppMethod | undefined,
  place: string | undefined,
): Owner {
  const before = owners.get(name);
  if (before !== undefined) return before;
  const owner = { name, method, place };
  owners.set(name, owner);
  kinds.set(owner, new Map());
  return owner;
}

function add<K>(sums: Map<K, number>, key: K, ms: number): void {
  sums.set(key, (sums.get(key) ?? 0) + ms);
}

/** The package of a file, or the path of the app's own file. */
function moduleOf(path: string): string {
  const installed = path.lastIndexOf(INSTALLED);
  if (installed >= 0) {
    const [first = '', second = ''] = path.slice(installed + INSTALLED.length).split('/');
    return first.startsWith('@') ? `${first}/${second}` : first;
  }
  if (OWN_DIRECTORY !== undefined && path.startsWith(OWN_DIRECTORY)) return 'nestjs-cluster';
  return relative(process.cwd(), path);
}
