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

/** Maximum length of the detail of a verdict, which must fit into a message to the primary. */
const MAX_DETAIL_LENGTH = 32 * 1024;

/** Serves the health of the cluster with the JSON format and status codes of terminus. */
@Injectable()
export class HealthEndpoints {
  /** An orchestrator asks again and again. */
  readonly #log = new OnceAMinute((line) => new Logger('ClusterModule').error(line));
  /** The indicators that concern only this process. */
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
   * Prepares the indicators. Call it before {@link verdict} and `mount()`. The first check loads
   * terminus.
   *
   * @throws ClusterConfigurationError if terminus is not installed or an indicator of the app
   * cannot work.
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
      // No indicators, because the answer itself shows that the process is alive.
      [`${path}/live`]: [],
      [`${path}/ready`]: [cluster],
    };
    for (const [endpoint, indicators] of Object.entries(checks)) {
      const check = shareInFlight(
        async (): Promise<EndpointResponse> => {
          const { status, result } = await this.#run(indicators);
          return { status, contentType: JSON_TYPE, body: this.#bodyOf(result, details) };
        },
        // A run that began before a drain must not be shared, because it would still report that
        // all is well.
        () => this.link.accepting,
      );
      mountEndpoint(adapter, endpoint, check);
    }
    return Object.keys(checks);
  }

  /** The health of this process, which the primary asks for before it relies on a new worker. */
  async verdict(): Promise<HealthVerdict> {
    const { status, result } = await this.#run(this.#ofProcess);
    if (status < 400) return { healthy: true, detail: null };
    const wrong = Object.entries(result.error ?? {}).map(
      ([key, report]) => `${key}: ${report?.['message'] ?? JSON.stringify(report)}`,
    );
    return { healthy: false, detail: wrong.join('; ').slice(0, MAX_DETAIL_LENGTH) };
  }

  /** No public indicator, because terminus has a `MemoryHealthIndicator`. */
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
    // No answer names the app's indicators, so the log does.
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
      // Terminus throws this exception if a check has failed.
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

/** The result with nothing but the statuses up, degraded and down. */
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
