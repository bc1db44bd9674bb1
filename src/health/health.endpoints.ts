import { HttpException, Inject, Injectable } from '@nestjs/common';
import { type AbstractHttpAdapter } from '@nestjs/core';
import {
  type HealthCheckResult,
  HealthCheckService,
  type HealthIndicatorFunction,
} from '@nestjs/terminus';
import { type EndpointResponse, mountEndpoint } from '../endpoints/mount-endpoint.js';
import type { ResolvedModuleOptions } from '../options/module.js';
import type { HealthVerdict } from '../snapshot/index.js';
import { ClusterHealthIndicator } from './cluster.health.js';
import { EventLoopHealthIndicator } from './event-loop.health.js';
import { ProcessMemoryHealthIndicator } from './memory.health.js';
import { OffloadHealthIndicator } from './offload.health.js';

type Options = Exclude<ResolvedModuleOptions['health'], false>;

/** Serves the health of the cluster in the JSON and with the status codes of terminus. */
@Injectable()
export class HealthEndpoints {
  constructor(
    @Inject(HealthCheckService) private readonly health: HealthCheckService,
    @Inject(ClusterHealthIndicator) private readonly cluster: ClusterHealthIndicator,
    @Inject(EventLoopHealthIndicator) private readonly eventLoop: EventLoopHealthIndicator,
    @Inject(ProcessMemoryHealthIndicator) private readonly memory: ProcessMemoryHealthIndicator,
    @Inject(OffloadHealthIndicator) private readonly offload: OffloadHealthIndicator,
  ) {}

  /** @returns the paths that are served. */
  mount(adapter: AbstractHttpAdapter, { path, details, minReady }: Options): string[] {
    const cluster = () => this.cluster.check('cluster', { minReady });
    const checks: Readonly<Record<string, readonly HealthIndicatorFunction[]>> = {
      [path]: [
        cluster,
        () => this.eventLoop.check(),
        () => this.memory.check(),
        () => this.offload.check(),
      ],
      // That it answers is all there is to say.
      [`${path}/live`]: [],
      [`${path}/ready`]: [cluster],
    };
    for (const [endpoint, indicators] of Object.entries(checks)) {
      mountEndpoint(adapter, endpoint, () => this.#check(indicators, details));
    }
    return Object.keys(checks);
  }

  /** Whether this process is well, whatever the rest of the cluster is: asked before it is relied on. */
  async verdict(): Promise<HealthVerdict> {
    const { status, body } = await this.#check(
      [() => this.eventLoop.check(), () => this.memory.check(), () => this.offload.check()],
      true,
    );
    return { healthy: status < 400, detail: status < 400 ? null : String(body) };
  }

  async #check(
    indicators: readonly HealthIndicatorFunction[],
    details: boolean,
  ): Promise<EndpointResponse> {
    try {
      return answer(200, await this.health.check([...indicators]), details);
    } catch (error) {
      // How terminus reports a check that failed.
      if (!(error instanceof HttpException)) throw error;
      return answer(error.getStatus(), error.getResponse() as HealthCheckResult, details);
    }
  }
}

function answer(status: number, result: HealthCheckResult, details: boolean): EndpointResponse {
  const body = details ? result : withoutDetails(result);
  return { status, contentType: 'application/json; charset=utf-8', body: JSON.stringify(body) };
}

/** The same shape with nothing in it but up and down. */
function withoutDetails(result: HealthCheckResult): HealthCheckResult {
  const statuses = (group: HealthCheckResult['info'] = {}) =>
    Object.fromEntries(
      Object.entries(group).map(([key, indicator]) => [key, { status: indicator!.status }]),
    );
  return {
    status: result.status,
    info: statuses(result.info),
    error: statuses(result.error),
    details: statuses(result.details),
  };
}
