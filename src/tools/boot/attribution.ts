import { relative } from 'node:path';
import { OWN_DIRECTORY } from '../../contract/process/own-directory.js';
import { type CallTree, pathOf } from '../profiles/call-tree.js';
import { callTreeOf, sampleMs } from '../profiles/cpu-summary.js';
import type { Recording } from './app/recording.js';

export interface ModuleTime {
  /** The time of its own code, and of loading it if it is CommonJS. */
  readonly selfMs: number;
  /** The time of its code with all that its code called or loaded. */
  readonly totalMs: number;
}

/** The position of a call in the call tree. */
interface Place {
  /** The modules with a function on the way from the root, innermost first. */
  readonly modules: ReadonlySet<string>;
  /** Node's loader at work there: of CommonJS or of ES modules. */
  readonly loader: 'cjs' | 'esm' | undefined;
  /** The name for the time that belongs to no module. */
  readonly rest: string;
}

const LOADING = '(Node loads ES modules)';
const NODE = '(Node itself)';
const REST: ReadonlyMap<string, string> = new Map([
  ['(idle)', '(waiting)'],
  ['(garbage collector)', '(garbage collection)'],
]);

/** The files that record the start. Their functions call what they measure. */
const RECORDERS = /[/]dist[/]programs[/]boot-[a-z.-]+js$/;
const INSTALLED = '/node_modules/';
const LOADER = 'node:internal/modules/';

/**
 * The time of each module: of a package by its name, of the app's file by its path from `directory`.
 * Names in parentheses stand for time that belongs to no module. Each sample of the profile counts
 * for the innermost module.
 */
export function attribute(
  { profile, loads, originUs }: Pick<Recording, 'profile' | 'loads' | 'originUs'>,
  directory: string,
): ReadonlyMap<string, ModuleTime> {
  const tree = callTreeOf(profile);
  const places = new Map<number, Place>();
  const times = new Map<string, ModuleTime>();
  const beingLoaded: string[] = [];
  let next = 0;
  let atUs = profile.startTime - originUs;
  for (const [index, id] of profile.samples.entries()) {
    atUs += profile.timeDeltas[index]!;
    for (; next < loads.length && loads[next]![0] * 1_000 <= atUs; next++) {
      const file = loads[next]![1];
      if (file === null) beingLoaded.pop();
      else beingLoaded.push(moduleOf(file, directory));
    }
    const place = places.get(id) ?? placeOf(tree, id, directory);
    places.set(id, place);
    const owner = ownerOf(place, beingLoaded.at(-1));
    const ms = sampleMs(profile, index);
    for (const name of new Set([owner, ...place.modules])) {
      const { selfMs, totalMs } = times.get(name) ?? { selfMs: 0, totalMs: 0 };
      times.set(name, { selfMs: selfMs + (name === owner ? ms : 0), totalMs: totalMs + ms });
    }
  }
  return times;
}

/** The package of a file, or the path of the app's own file. */
export function moduleOf(path: string, directory: string): string {
  const installed = path.lastIndexOf(INSTALLED);
  if (installed >= 0) {
    const [first = '', second = ''] = path.slice(installed + INSTALLED.length).split('/');
    return first.startsWith('@') ? `${first}/${second}` : first;
  }
  if (OWN_DIRECTORY !== undefined && path.startsWith(OWN_DIRECTORY)) return 'nestjs-cluster';
  return relative(directory, path);
}

function ownerOf({ modules, loader, rest }: Place, beingLoaded: string | undefined): string {
  if (loader !== undefined && beingLoaded !== undefined) return beingLoaded;
  // One import loads many ES modules at once, so their time is not the importer's.
  if (loader === 'esm') return LOADING;
  const [innermost = rest] = modules;
  return innermost;
}

function placeOf(tree: CallTree, id: number, directory: string): Place {
  const path = [...tree.pathFrom(id)];
  const modules = new Set<string>();
  let loader: Place['loader'];
  for (const { url } of path) {
    if (RECORDERS.test(url)) continue;
    if (/^(?:file:|\/)/.test(url)) modules.add(moduleOf(pathOf(url), directory));
    else if (modules.size === 0 && url.startsWith(LOADER)) {
      loader ??= url.startsWith(`${LOADER}esm/`) ? 'esm' : 'cjs';
    }
  }
  return { modules, loader, rest: REST.get(path[0]?.functionName ?? '') ?? NODE };
}
