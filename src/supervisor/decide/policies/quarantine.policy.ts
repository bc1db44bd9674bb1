import type { Fingerprint } from '../../../contract/ipc/index.js';

/** A request that was at work in workers as they ended. */
interface SuspectUrl {
  readonly url: string;
  readonly path: string;
  readonly deaths: number;
  /** More than its deaths where it had begun last: that is what runs when an event loop stops. */
  readonly weight: number;
  /** The error that ended a worker came from its own asynchronous context. */
  readonly certain: boolean;
}

/** The requests of one route among them. */
export interface SuspectRoute {
  readonly key: string;
  readonly method: string;
  readonly route: string | null;
  readonly urls: readonly SuspectUrl[];
  /** Workers that ended over requests of the route. */
  readonly deaths: number;
  /** Another request of the route was answered, and its worker lived. */
  readonly lives: boolean;
}

/** Requests that are kept from the app. */
export interface Quarantined {
  readonly id: number;
  readonly method: string;
  readonly route: string | null;
  /** `null`: every request of the route. */
  readonly url: string | null;
  readonly path: string;
  /** Workers that it had ended by then. */
  readonly deaths: number;
  /** When one of them may be tried again; monotonic ms. */
  readonly trialAt: number;
}

/** What is known of requests that end workers, as plain data. */
export interface QuarantineState {
  /** The newest last. */
  readonly suspects: readonly SuspectRoute[];
  readonly quarantined: readonly Quarantined[];
  /** Until then workers watch their requests closely; monotonic ms. */
  readonly watchedUntil: number;
  readonly lastId: number;
}

export const NO_QUARANTINE: QuarantineState = {
  suspects: [],
  quarantined: [],
  watchedUntil: -Infinity,
  lastId: 0,
};

/** Deaths that put a request under quarantine. */
const DEADLY = 2;

/** The same for a route of which other requests live. */
const DEADLY_ROUTE = 5;

/** Suspects of a cluster whose workers have lived for this long are forgotten. */
const MEMORY_MS = 5 * 60_000;

/** Time between two trials. */
export const TRIAL_MS = 60_000;

const MAX_ROUTES = 100;
const MAX_URLS = 20;
const MAX_QUARANTINED = 100;

/**
 * A worker has ended by its own fault.
 *
 * @param found what was at work in it; none where nothing is known.
 * @param certain the error was that request's, so that it counts whatever else it does.
 */
export function workerEnded(
  state: QuarantineState,
  found: readonly Fingerprint[],
  certain: boolean,
  now: number,
): QuarantineState {
  const suspects = now < state.watchedUntil ? state.suspects : [];
  const watched = { ...state, suspects, watchedUntil: now + MEMORY_MS };
  // It was at work before it was kept from the app: that explains this end.
  if (found.some((each) => state.quarantined.some((entry) => isUnder(entry, each)))) return watched;
  // However many of them were at work, it is one end.
  const apart = [...new Map(found.map((each) => [each.method + each.url, each])).values()];
  const keys = [...new Set(apart.map(keyOf))];
  const accused = keys.reduce((before, key) => {
    const own = apart.filter((each) => keyOf(each) === key);
    return accuse(before, key, own, certain, found.at(-1)!);
  }, watched);
  const verdicts = keys.map((key) => ({ key, ...judge(accused, key) }));
  // Others are there by chance: they are cleared as they live.
  const worst = Math.max(...verdicts.map(({ weight }) => weight));
  return verdicts
    .filter(({ weight, entries }) => entries.length > 0 && weight === worst)
    .reduce((before, { key, entries }) => convict(before, key, entries, now), accused);
}

/** A request was answered, and its worker lives on. */
export function requestLived(state: QuarantineState, lived: Fingerprint): QuarantineState {
  const key = keyOf(lived);
  const suspect = state.suspects.find((each) => each.key === key);
  if (suspect === undefined) return state;
  const own = suspect.urls.find(({ url }) => url === lived.url);
  // It ends workers at times, and not each time.
  if (own?.certain) return state;
  if (own === undefined) return suspect.lives ? state : put(state, { ...suspect, lives: true });
  const urls = suspect.urls.filter((each) => each !== own);
  if (urls.length === 0) return without(state, key);
  return put(state, { ...suspect, urls, deaths: suspect.deaths - own.deaths, lives: true });
}

/** Entries of which one request may be tried, and the state in which that is noted. */
export function trialsDue(
  state: QuarantineState,
  now: number,
): { readonly state: QuarantineState; readonly due: readonly number[] } {
  const due = state.quarantined.filter(({ trialAt }) => trialAt <= now).map(({ id }) => id);
  if (due.length === 0) return { state, due };
  const quarantined = state.quarantined.map((each) =>
    due.includes(each.id) ? { ...each, trialAt: now + TRIAL_MS } : each,
  );
  return { state: { ...state, quarantined }, due };
}

/** The request that was tried did its worker no harm. */
export function trialLived(state: QuarantineState, id: number): QuarantineState {
  return { ...state, quarantined: state.quarantined.filter((each) => each.id !== id) };
}

function accuse(
  state: QuarantineState,
  key: string,
  found: readonly Fingerprint[],
  certain: boolean,
  youngest: Fingerprint,
): QuarantineState {
  const { method, route } = found[0]!;
  const before = state.suspects.find((each) => each.key === key);
  const urls = new Map(before?.urls.map((each) => [each.url, each]));
  for (const { url, path } of found) {
    const known = urls.get(url);
    urls.delete(url);
    const deaths = (known?.deaths ?? 0) + 1;
    const weight = (known?.weight ?? 0) + (url === youngest.url ? 2 : 1);
    urls.set(url, { url, path, deaths, weight, certain: certain || known?.certain === true });
  }
  return put(state, {
    key,
    method,
    route,
    urls: [...urls.values()].slice(-MAX_URLS),
    deaths: (before?.deaths ?? 0) + 1,
    lives: before?.lives ?? false,
  });
}

interface Verdict {
  readonly weight: number;
  readonly entries: readonly Pick<Quarantined, 'method' | 'route' | 'url' | 'path' | 'deaths'>[];
}

/** Narrow where the evidence is: one URL, if that alone has ended workers; else the route. */
function judge(state: QuarantineState, key: string): Verdict {
  const { method, route, urls, deaths, lives } = state.suspects.find((each) => each.key === key)!;
  const weight = Math.max(...urls.map((each) => each.weight));
  const deadly = urls.filter((each) => each.deaths >= DEADLY && each.weight === weight);
  if (deadly.length > 0) {
    return { weight, entries: deadly.map((each) => ({ method, route, ...each })) };
  }
  const isRoute = route !== null && deaths >= (lives ? DEADLY_ROUTE : DEADLY);
  const { path } = urls.at(-1)!;
  return { weight, entries: isRoute ? [{ method, route, url: null, path, deaths }] : [] };
}

function convict(
  state: QuarantineState,
  key: string,
  entries: Verdict['entries'],
  now: number,
): QuarantineState {
  const added = entries.map(({ method, route, url, path, deaths }, index) => {
    const id = state.lastId + 1 + index;
    return { id, method, route, url, path, deaths, trialAt: now + TRIAL_MS };
  });
  return {
    ...without(state, key),
    quarantined: [...state.quarantined, ...added].slice(-MAX_QUARANTINED),
    lastId: state.lastId + added.length,
  };
}

/** Whether an entry is about a request. */
function isUnder(
  { method, route, url }: Pick<Quarantined, 'method' | 'route' | 'url'>,
  request: Fingerprint,
): boolean {
  return (
    method === request.method && route === request.route && (url ?? request.url) === request.url
  );
}

/** Requests that no route has are told apart by their URLs alone. */
function keyOf({ method, route, url }: Fingerprint): string {
  return route === null ? `${method}  ${url}` : `${method} ${route}`;
}

function put(state: QuarantineState, suspect: SuspectRoute): QuarantineState {
  const suspects = [...without(state, suspect.key).suspects, suspect].slice(-MAX_ROUTES);
  return { ...state, suspects };
}

function without(state: QuarantineState, key: string): QuarantineState {
  return { ...state, suspects: state.suspects.filter((each) => each.key !== key) };
}
