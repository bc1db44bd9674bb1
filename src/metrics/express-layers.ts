/** Stands for what cannot be told of a prefix. */
export const ANY = '*';

/** What an Express router keeps of `get()`, `all()`, … (router 2.x, `lib/route.js`). */
export interface Route {
  readonly path: unknown;
  readonly stack: readonly unknown[];
  readonly methods?: { readonly _all?: boolean };
}

/** Tries one path of a layer on an actual path; throws where a parameter is not decodable. */
type Matcher = (path: string) => false | { readonly path: string; readonly params: object };

/** What an Express router keeps of each `use()` and each route (router 2.x, `lib/layer.js`). */
export interface Layer {
  readonly name: string;
  readonly handle: unknown;
  readonly route?: Route;
  /** Mounted at `/`: takes every path, and nothing off it. */
  readonly slash: boolean;
  readonly matchers: readonly Matcher[];
  /** From router 2.3. */
  readonly rawPath?: unknown;
}

export type Stack = readonly Layer[];

/** A prefix of an actual path that a layer took off, and what is left. */
export interface TakenPrefix {
  readonly template: string;
  readonly rest: string;
}

/** What a segment is replaced by to see whether it is a parameter's. */
const PROBE = 'nestjs-cluster-probe';

/** Templates of layers of router 2.2, which tells them not. */
const recovered = new WeakMap<Matcher, string>();

/** The layers of a router, or of an Express app that is used as one. */
export function stackOf(handle: unknown): Stack | undefined {
  const { stack, router } = handle as { stack?: unknown; router?: { stack?: unknown } };
  const layers = stack ?? router?.stack;
  return Array.isArray(layers) ? (layers as Layer[]) : undefined;
}

/** The template of a layer where it is the same for each request that comes through. */
export function fixedTemplate({ slash, rawPath }: Layer): string | undefined {
  if (slash) return '';
  return typeof rawPath === 'string' || rawPath instanceof RegExp ? textOf(rawPath) : undefined;
}

/** What the layer takes off `path`, as its router does it. */
export function takePrefix(layer: Layer, path: string): TakenPrefix | undefined {
  if (layer.slash) return { template: '', rest: path };
  for (const [index, matcher] of layer.matchers.entries()) {
    const match = matcher(path || '/');
    if (match === false) continue;
    const taken = path === '' ? '' : match.path;
    const rest = path.slice(taken.length);
    if (!path.startsWith(taken) || (rest !== '' && !rest.startsWith('/'))) return undefined;
    return { template: templateOf(layer, index, taken), rest };
  }
  return undefined;
}

/** Whether the layer is one for `path`. */
export function takes({ matchers }: Layer, path: string): boolean {
  return matchers.some((matcher) => matcher(path || '/') !== false);
}

/** @param prefix template of where the router is mounted. */
export function join(prefix: string, path: unknown): string {
  return prefix !== '' && path === '/' ? prefix : prefix + String(path);
}

function templateOf({ rawPath, matchers }: Layer, index: number, taken: string): string {
  if (rawPath !== undefined) return textOf(Array.isArray(rawPath) ? rawPath[index] : rawPath);
  const matcher = matchers[index]!;
  let template = recovered.get(matcher);
  if (template === undefined) recovered.set(matcher, (template = recoverTemplate(matcher, taken)));
  return template;
}

function textOf(path: unknown): string {
  return String(path).replace(/\/+$/, '');
}

/**
 * The path that a matcher was made of, from a path it takes: a segment for which
 * anything can stand is a parameter's. Once for each matcher, so that requests
 * cannot make more templates than there are matchers.
 */
function recoverTemplate(matcher: Matcher, taken: string): string {
  // Its only trace is the name of the function.
  if (matcher.name === 'regexpMatcher') return `/${ANY}`;
  // Where case does not matter, not that of the first client.
  const lower = taken.toLowerCase();
  const sample = (matcher(lower) === false ? taken : lower).replace(/\/+$/, '');
  const names = new Set<string>();
  const segments = sample.split('/').flatMap((segment, index, all) => {
    const probe = matcher(all.with(index, PROBE).join('/'));
    const [name, value] =
      (probe && Object.entries(probe.params).find(([, value]) => holdsProbe(value))) || [];
    if (name === undefined) return [segment];
    if (names.has(name)) return []; // a further segment of a wildcard
    names.add(name);
    return [Array.isArray(value) ? `*${name}` : `:${name}`];
  });
  const match = matcher(sample);
  // A parameter that is part of a segment has not been found.
  const complete = match !== false && Object.keys(match.params).length === names.size;
  return complete ? segments.join('/') : `/${ANY}`;
}

function holdsProbe(value: unknown): boolean {
  return value === PROBE || (Array.isArray(value) && value.includes(PROBE));
}
