import { type Fingerprint, NO_ROUTE } from '../../../contract/ipc/index.js';

/** A URL whose requests were being handled when workers ended. */
interface SuspectUrl {
  readonly url: string;
  readonly path: string;
  readonly deaths: number;
  /** Weighted deaths. A death counts double if the request began last, because it may have blocked the loop. */
  readonly weight: number;
  /** Whether an error that ended a worker came from the request's own asynchronous context. */
  readonly certain: boolean;
}

/** The suspected requests of one route. */
export interface SuspectRoute {
  readonly key: string;
  readonly method: string;
  readonly route: string;
  readonly urls: readonly SuspectUrl[];
  /** The number of workers that ended while they handled requests of the route. */
  readonly deaths: number;
  /** Whether another request of the route was answered and did not end its worker. */
  readonly lives: boolean;
}

/** An entry of the quarantine. Requests that match it do not reach the app. */
export interface Quarantined {
  readonly id: number;
  readonly method: string;
  readonly route: string;
  /** The URL of the requests; `null` for every request of the route. */
  readonly url: string | null;
  readonly path: string;
  /** The number of workers that the requests had ended when the entry was made. */
  readonly deaths: number;
  /** When one worker may let such a request through as a trial; monotonic ms. */
  readonly trialAt: number;
}

/** The facts about requests that end workers, as plain data. */
export interface QuarantineState {
  /** Routes with suspected requests, the newest last. */
  readonly suspects: readonly SuspectRoute[];
  readonly quarantined: readonly Quarantined[];
  /** The time until which workers report each of their requests; monotonic ms. */
  readonly watchedUntil: number;
  readonly lastId: number;
}

export const NO_QUARANTINE: QuarantineState = {
  suspects: [],
  quarantined: [],
  watchedUntil: -Infinity,
  lastId: 0,
};

/** A URL or a route is quarantined once its requests have ended this number of workers. */
const DEADLY = 2;

/** The same number for a route that has also answered other requests, and for requests without a route. */
const DEADLY_ROUTE = 5;

/** Suspects are forgotten if no worker has ended for this long. */
const MEMORY_MS = 5 * 60_000;

/** The time between two trials of an entry. */
export const TRIAL_MS = 60_000;

const MAX_ROUTES = 100;
const MAX_URLS = 20;
const MAX_QUARANTINED = 100;

/**
 * Notes which requests a worker was handling when it ended by its own fault.
 *
 * @param found the requests that the worker was handling; empty if they are unknown.
 * @param certain whether the error came from the request. If so, a later answer does not clear it.
 */
export function workerEnded(
  state: QuarantineState,
  found: readonly Fingerprint[],
  certain: boolean,
  now: number,
): QuarantineState {
  const suspects = now < state.watchedUntil ? state.suspects : [];
  const watched = { ...state, suspects, watchedUntil: now + MEMORY_MS };
  // A request that began before it was quarantined explains this end, so no other request is suspected.
  if (found.some((each) => state.quarantined.some((entry) => isUnder(entry, each)))) return watched;
  // Requests with the same URL count once, because only one worker has ended.
  const apart = [...new Map(found.map((each) => [each.method + each.url, each])).values()];
  const keys = [...new Set(apart.map(keyOf))];
  const accused = keys.reduce((before, key) => {
    const own = apart.filter((each) => keyOf(each) === key);
    return accuse(before, key, own, certain, found.at(-1)!);
  }, watched);
  const verdicts = keys.map((key) => ({ key, ...judge(accused, key) }));
  // Only the suspects with the highest weight are quarantined. The others may be suspects by chance.
  const worst = Math.max(...verdicts.map(({ weight }) => weight));
  return verdicts
    .filter(({ weight, entries }) => entries.length > 0 && weight === worst)
    .reduce((before, { key, entries }) => convict(before, key, entries, now), accused);
}

/** Removes a suspect whose request was answered and did not end its worker. */
export function requestLived(state: QuarantineState, lived: Fingerprint): QuarantineState {
  const key = keyOf(lived);
  const suspect = state.suspects.find((each) => each.key === key);
  if (suspect === undefined) return state;
  const own = suspect.urls.find(({ url }) => url === lived.url);
  // A request that certainly ended a worker may do so only sometimes, so an answer does not clear it.
  if (own?.certain) return state;
  if (own === undefined) return suspect.lives ? state : put(state, { ...suspect, lives: true });
  const urls = suspect.urls.filter((each) => each !== own);
  if (urls.length === 0) return without(state, key);
  return put(state, { ...suspect, urls, deaths: suspect.deaths - own.deaths, lives: true });
}

/** The ids of the entries that may be tried now, and the state with their next trial times. */
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

/** Removes an entry whose request was tried and did not end its worker. */
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

/** Prefers the narrower entry: a URL if it has ended enough workers, otherwise the route. */
function judge(state: QuarantineState, key: string): Verdict {
  const { method, route, urls, deaths, lives } = state.suspects.find((each) => each.key === key)!;
  const weight = Math.max(...urls.map((each) => each.weight));
  const deadly = urls.filter((each) => each.deaths >= DEADLY && each.weight === weight);
  if (deadly.length > 0) {
    return { weight, entries: deadly.map((each) => ({ method, route, ...each })) };
  }
  const isRoute = deaths >= (lives || route === NO_ROUTE ? DEADLY_ROUTE : DEADLY);
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

/** Whether an entry covers a request. */
function isUnder(entry: Quarantined, request: Fingerprint): boolean {
  return keyOf(entry) === keyOf(request) && (entry.url ?? request.url) === request.url;
}

function keyOf({ method, route }: Pick<Fingerprint, 'method' | 'route'>): string {
  return `${method} ${route}`;
}

function put(state: QuarantineState, suspect: SuspectRoute): QuarantineState {
  const suspects = [...without(state, suspect.key).suspects, suspect].slice(-MAX_ROUTES);
  return { ...state, suspects };
}

function without(state: QuarantineState, key: string): QuarantineState {
  return { ...state, suspects: state.suspects.filter((each) => each.key !== key) };
}
