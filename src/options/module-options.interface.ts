import type { Registry } from 'prom-client';

/** Workers that must be ready: a count from 1, a share of the desired ones below 1, or all of them. */
export type MinReady = number | 'all';

/** Options of the health endpoints. */
export interface HealthOptions {
  /** Path of the whole report; `/live` and `/ready` are below it. Default `/health`. */
  path?: string | undefined;
  /** `false` leaves out everything but up and down. Default true. */
  details?: boolean | undefined;
  /** Workers that must be ready for the cluster to be up. Default 1. */
  minReady?: MinReady | undefined;
}

/** Options of the metrics endpoint. */
export interface MetricsOptions {
  /** Path of the endpoint. Default `/metrics`. */
  path?: string | undefined;
  /** Put before each name that this package registers. Default none. */
  prefix?: string | undefined;
  /** Upper bounds of `http_request_duration_seconds`, in seconds, rising. Default those of prom-client. */
  buckets?: readonly number[] | undefined;
  /** The app's own registry. Default: prom-client's global one. */
  registry?: Registry | undefined;
  /** prom-client's default metrics of the process. Default true. */
  defaultMetrics?: boolean | undefined;
}

/** Options of `ClusterModule.forRoot()`. Every one has a default. */
export interface ClusterModuleOptions {
  /** See {@link HealthOptions}; `false` leaves the endpoints out. */
  health?: HealthOptions | false | undefined;
  /** See {@link MetricsOptions}; `false` leaves the endpoint out and measures no request. */
  metrics?: MetricsOptions | false | undefined;
}

/** {@link ClusterModuleOptions} with every value in force. */
export interface ResolvedModuleOptions {
  readonly health: Readonly<Required<HealthOptions>> | false;
  readonly metrics:
    | (Readonly<Required<Omit<MetricsOptions, 'registry'>>> & {
        readonly registry: Registry | undefined;
      })
    | false;
}
