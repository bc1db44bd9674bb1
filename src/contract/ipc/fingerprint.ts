/** The data by which a request that ends workers is recognised. */
export interface Fingerprint {
  readonly method: string;
  /** Template of the app's route; `null` if no Nest route matches the path. */
  readonly route: string | null;
  /** Short hash of the URL with its query: a client's text is never a key. */
  readonly url: string;
  /** The path without the query, shortened, for people who read it. */
  readonly path: string;
}

/** Requests that are answered 503 before the app sees them. */
export interface QuarantineEntry {
  readonly id: number;
  readonly method: string;
  readonly route: string | null;
  /** `null`: every request of the route. */
  readonly url: string | null;
  /** This worker lets one request through, to see whether it still ends workers. */
  readonly trial: boolean;
}

/** The limit of suspects in a report: the request that ended a worker is among the youngest. */
export const MAX_SUSPECTS = 16;
