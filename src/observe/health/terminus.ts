import type * as TerminusPackage from '@nestjs/terminus';
import { Inject, Injectable } from '@nestjs/common';
import { LazyModuleLoader, ModulesContainer } from '@nestjs/core';
import type { HealthCheckService } from '@nestjs/terminus';
import { loaded, refuseMissing } from '../../contract/options/peers.js';

const TERMINUS = '@nestjs/terminus';

/** Whether @nestjs/terminus is installed. If not, it may be bundled: see {@link loadTerminus}. */
export function hasTerminus(): boolean {
  const { resolve } = import.meta as Partial<ImportMeta>;
  try {
    return resolve?.(TERMINUS) !== undefined; // missing in CommonJS
  } catch {
    return false;
  }
}

/** @throws ClusterConfigurationError if terminus is not installed. */
async function loadTerminus(): Promise<typeof TerminusPackage> {
  const install = `npm install ${TERMINUS} (with Nest 11: ${TERMINUS}@11)`;
  const found = await loaded(TERMINUS, import('@nestjs/terminus'));
  return found ?? refuseMissing('health', `${TERMINUS}, which is not installed; run ${install}`);
}

/** Loads @nestjs/terminus only if health endpoints are enabled, because it may not be installed. */
@Injectable()
export class Terminus {
  constructor(
    @Inject(LazyModuleLoader) private readonly loader: LazyModuleLoader,
    @Inject(ModulesContainer) private readonly modules: ModulesContainer,
  ) {}

  /** @throws ClusterConfigurationError if terminus is not installed. */
  async load(): Promise<HealthCheckService> {
    const { HealthCheckService, TerminusModule } = await loadTerminus();
    const module = await this.loader.load(
      // While an indicator is down, terminus would log the whole report for each probe.
      () => TerminusModule.forRoot({ logger: false }),
      { logger: false },
    );
    return module.get(HealthCheckService);
  }

  /** Whether the loaded version of terminus supports the status `degraded`. Before 12, it drops degraded reports. */
  get knowsDegraded(): boolean {
    // Finds the service by name, because terminus may not be loaded.
    return [...this.modules.values()]
      .flatMap(({ providers }) => [...providers.values()])
      .some(
        ({ name, instance }) =>
          name === 'HealthIndicatorService' &&
          'degraded' in (instance as unknown as { check(key: string): object }).check(''),
      );
  }
}
