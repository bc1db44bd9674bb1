import { ANY, type Layer, type Stack, stackOf, takePrefix, takes } from './express-layers.js';

/** The layers through which a request gets to a router, outermost first. */
export type Mounts = readonly Layer[];

/**
 * The template of what `mounts` take off `path`: of all of it, or of what they
 * leave to a route.
 */
export function templateAlong(mounts: Mounts, path: string, route?: Layer): string | undefined {
  let template = '';
  let rest = path;
  for (const layer of mounts) {
    const taken = takePrefix(layer, rest);
    if (taken === undefined) return undefined;
    template += taken.template;
    rest = taken.rest;
  }
  const arrives = route === undefined ? rest === '' : takes(route, rest);
  return arrives ? template : undefined;
}

/**
 * The template of an actual prefix, from the layers that take it.
 *
 * @param subApps those that the request is in, outermost first.
 */
export function prefixTemplate(
  stack: Stack,
  prefix: string,
  subApps: readonly Stack[],
): string | undefined {
  let best: string | undefined;
  let vague: string = ANY;
  for (const layer of stack) {
    const taken = layer.route ? undefined : takePrefix(layer, prefix);
    if (taken === undefined) continue;
    const { template, rest } = taken;
    let found: string | undefined;
    if (rest === '') {
      found = template;
    } else {
      const entersSubApp = isSubApp(layer);
      const below = stackOf(layer.handle) ?? (entersSubApp ? subApps[0] : undefined);
      const further =
        below && prefixTemplate(below, rest, entersSubApp ? subApps.slice(1) : subApps);
      if (further !== undefined) found = template + further;
      else if (below === undefined && template !== '') found = `${template}/${ANY}`;
    }
    if (found === undefined) continue;
    // The last, since middleware that sees the request on its way comes before.
    if (!found.includes(ANY)) best = found;
    else if (knownSegments(found) >= knownSegments(vague)) vague = found;
  }
  return best ?? (vague === ANY ? undefined : vague);
}

function knownSegments(template: string): number {
  return template.slice(0, template.indexOf(ANY)).split('/').length;
}

/** The template of where the sub-app is mounted that takes `path`. */
export function subAppTemplate(stack: Stack, path: string): string | undefined {
  for (const layer of stack) {
    const taken = layer.route ? undefined : takePrefix(layer, path);
    if (taken === undefined) continue;
    if (isSubApp(layer)) return taken.template;
    const below = stackOf(layer.handle);
    const further = below && subAppTemplate(below, taken.rest);
    if (further !== undefined) return taken.template + further;
  }
  return undefined;
}

/** `app.use(express())` puts a function of this name around the other app, and hides it. */
function isSubApp({ name }: Layer): boolean {
  return name === 'mounted_app';
}
