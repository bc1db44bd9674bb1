/** By what a request that ends workers is known again. */
export interface Fingerprint {
  readonly method: string;
  /** Template of the app's route; `null` if no route of Nest's has the path. */
  readonly route: string | null;
  /** Short hash of the URL with its query: a client's text is never a key. */
  readonly url: string;
  /** Path without the query, cut: for those who read it. */
  readonly path: string;
}

/** Requests that are answered 503 before the app sees them. */
export interface QuarantineEntry {
  readonly id: number;
  readonly method: string;
  readonly route: string | null;
  /** `null`: every request of the route. */
  readonly url: string | null;
  /** This worker lets one through, to see whether it still kills. */
  readonly trial: boolean;
}

/** More are not told: what ended a worker is among the youngest. */
export const MAX_SUSPECTS = 16;
