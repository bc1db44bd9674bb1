import { HttpException, Inject, Injectable, Logger } from '@nestjs/common';
import { type AbstractHttpAdapter, ModuleRef } from '@nestjs/core';
import type {
  HealthCheckResult,
  HealthCheckService,
  HealthIndicatorFunction,
  HealthIndicatorResult,
} from '@nestjs/terminus';
import {
  type EndpointResponse,
  JSON_TYPE,
  mountEndpoint,
  shareInFlight,
} from '../endpoints/mount-endpoint.js';
import { inspected, OnceAMinute } from '../../contract/errors/errors.js';
import type { ResolvedModuleOptions } from '../../contract/options/module.js';
import {
  CLUSTER_LINK,
  type HealthVerdict,
  type ClusterLink,
} from '../../contract/snapshot/types.js';
import { appChecks } from './app-checks.js';
import {
  ClusterHealthIndicator,
  EventLoopHealthIndicator,
  OffloadHealthIndicator,
} from './indicators.js';
import { hasTerminus, Terminus } from './terminus.js';

type Options = Exclude<ResolvedModuleOptions['health'], false>;

/** Maximum length of a verdict's detail, so that it fits into a message to the primary. */
const MAX_DETAIL_LENGTH = 32 * 1024;

/** Serves the cluster's health in the JSON format of terminus. */
@Injectable()
export class HealthEndpoints {
  /** Limited to one line a minute, because orchestrators probe all the time. */
  readonly #log = new OnceAMinute((line) => new Logger('ClusterModule').error(line));
  /** The indicators of this process, without the cluster's. */
  #ofProcess: readonly HealthIndicatorFunction[] = [];
  #health: Promise<HealthCheckService> | undefined;

  constructor(
    @Inject(Terminus) private readonly terminus: Terminus,
    @Inject(ClusterHealthIndicator) private readonly cluster: ClusterHealthIndicator,
    @Inject(EventLoopHealthIndicator) private readonly eventLoop: EventLoopHealthIndicator,
    @Inject(OffloadHealthIndicator) private readonly offload: OffloadHealthIndicator,
    @Inject(CLUSTER_LINK)
    private readonly link: Pick<ClusterLink, 'accepting' | 'showsDetails' | 'stats'>,
    @Inject(ModuleRef) private readonly moduleRef: ModuleRef,
  ) {}

  /**
   * Prepares the indicators. Must be called before {@link verdict} and {@link mount}. Terminus is loaded
   * by the first check.
   *
   * @throws ClusterConfigurationError if terminus is not installed or an indicator is not a provider.
   */
  async prepare(options: Options): Promise<void> {
    if (!hasTerminus()) await this.#load();
    this.#ofProcess = [
      () => this.eventLoop.check(),
      () => this.#memory(),
      () => this.offload.check(),
      ...appChecks(options.indicators, this.moduleRef, this.#log),
    ];
  }

  /** @returns the paths that are served. */
  mount(adapter: AbstractHttpAdapter, { path, details, minReady }: Options): string[] {
    const cluster = () => this.cluster.check('cluster', { minReady });
    const checks: Readonly<Record<string, readonly HealthIndicatorFunction[]>> = {
      [path]: [cluster, ...this.#ofProcess],
      // No indicators, because any response shows that the process is alive.
      [`${path}/live`]: [],
      [`${path}/ready`]: [cluster],
    };
    for (const [endpoint, indicators] of Object.entries(checks)) {
      const check = shareInFlight(
        async (): Promise<EndpointResponse> => {
          const { status, result } = await this.#run(indicators);
          return { status, contentType: JSON_TYPE, body: this.#bodyOf(result, details) };
        },
        // A check that began before the drain would still report that the worker accepts requests.
        () => this.link.accepting,
      );
      mountEndpoint(adapter, endpoint, check);
    }
    return Object.keys(checks);
  }

  /** The health of this process. The primary requests it before it replaces the old worker. */
  async verdict(): Promise<HealthVerdict> {
    const { status, result } = await this.#run(this.#ofProcess);
    if (status < 400) return { healthy: true, detail: null };
    const wrong = Object.entries(result.error ?? {}).map(
      ([key, report]) => `${key}: ${report?.['message'] ?? JSON.stringify(report)}`,
    );
    return { healthy: false, detail: wrong.join('; ').slice(0, MAX_DETAIL_LENGTH) };
  }

  /** Not a public indicator, because terminus has a `MemoryHealthIndicator`. */
  #memory(): HealthIndicatorResult<'memory'> {
    const { residentMemoryBytes, heapUsedBytes } = this.link.stats();
    return { memory: { residentMemoryBytes, heapUsedBytes, status: 'up' } };
  }

  #load(): Promise<HealthCheckService> {
    return (this.#health ??= this.terminus.load().catch((error: unknown) => {
      this.#health = undefined;
      throw error;
    }));
  }

  #bodyOf(result: HealthCheckResult, details: boolean): string {
    if (this.link.showsDetails) {
      return JSON.stringify(details ? result : statusesOf(result, () => true));
    }
    // Responses do not name the app's indicators, so the log names them.
    for (const key of Object.keys(result.error ?? {}).filter((each) => !isOurs(each))) {
      this.#log.say(`health indicator "${key}" is down`, key);
    }
    return JSON.stringify(statusesOf(result, isOurs));
  }

  async #run(
    indicators: readonly HealthIndicatorFunction[],
  ): Promise<{ readonly status: number; readonly result: HealthCheckResult }> {
    try {
      const health = await this.#load();
      return { status: 200, result: await health.check([...indicators]) };
    } catch (error) {
      // Terminus throws this exception if an indicator is down.
      if (error instanceof HttpException) {
        return { status: error.getStatus(), result: error.getResponse() as HealthCheckResult };
      }
      this.#log.say(`the health check failed: ${inspected(error)}`, 'the health check failed');
      throw error;
    }
  }
}

const isOurs = (key: string): boolean =>
  ['cluster', 'eventLoop', 'memory', 'offload'].includes(key);

/** The result, reduced to each indicator's status. */
function statusesOf(
  result: HealthCheckResult,
  isShown: (key: string) => boolean,
): HealthCheckResult {
  const statuses = (group: HealthCheckResult['info'] = {}) =>
    Object.fromEntries(
      Object.entries(group)
        .filter(([key]) => isShown(key))
        .map(([key, indicator]) => [key, { status: indicator!.status }]),
    );
  return {
    status: result.status,
    info: statuses(result.info),
    error: statuses(result.error),
    details: statuses(result.details),
  };
}
