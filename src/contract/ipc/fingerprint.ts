/** The data by which a request that ends workers is recognised. */
export interface Fingerprint {
  readonly method: string;
  /** Template of the app's route, or {@link NO_ROUTE}. */
  readonly route: string;
  /** Short hash of the URL with its query, so that a client's text never becomes a key. Without a route, of the path. */
  readonly url: string;
  /** The path without the query, shortened, for logs. */
  readonly path: string;
}

/** The route of all requests that no Nest route handles: middleware answers them, or nothing is found. */
export const NO_ROUTE = '';

/** An entry of the quarantine: requests that are answered 503 before the app sees them. */
export interface QuarantineEntry {
  readonly id: number;
  readonly method: string;
  readonly route: string;
  /** Hash of one URL; `null` = every request of the route. */
  readonly url: string | null;
  /** Whether this worker passes one such request to the app, to see whether the request still ends workers. */
  readonly trial: boolean;
}

/** Maximum number of suspects in a report. The youngest are reported, because the guilty request is among them. */
export const MAX_SUSPECTS = 16;
