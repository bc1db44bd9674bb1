import { Inject, Injectable } from '@nestjs/common';
import { LazyModuleLoader, ModulesContainer } from '@nestjs/core';
import type { HealthCheckService } from '@nestjs/terminus';
import { loadPeer } from '../../contract/options/module.js';

/** The method by which versions of terminus are told apart. */
interface IndicatorService {
  check(key: string): object;
}

/** The name of terminus's class: looked for where this package has not loaded it. */
const INDICATOR_SERVICE = 'HealthIndicatorService';

/** @nestjs/terminus, loaded only where the health endpoints are on: it need not be installed. */
@Injectable()
export class Terminus {
  #indicators: IndicatorService | undefined;

  constructor(
    @Inject(LazyModuleLoader) private readonly loader: LazyModuleLoader,
    @Inject(ModulesContainer) private readonly modules: ModulesContainer,
  ) {}

  /** @throws ClusterConfigurationError if terminus is not installed. */
  async load(): Promise<HealthCheckService> {
    const terminus = await loadPeer('health', () => import('@nestjs/terminus'));
    const { HealthCheckService, HealthIndicatorService, TerminusModule } = terminus;
    const module = await this.loader.load(
      // Its logger would write the whole report at each probe for as long as something is down.
      () => TerminusModule.forRoot({ logger: false }),
      { logger: false },
    );
    this.#indicators = module.get(HealthIndicatorService);
    return module.get(HealthCheckService);
  }

  /** Whether it counts `degraded`: one before 12 drops what is reported so. */
  get knowsDegraded(): boolean {
    const indicators = (this.#indicators ??= this.#indicatorsOfApp());
    return indicators !== undefined && 'degraded' in indicators.check('');
  }

  /** In an app with a health controller of its own, and none of ours. */
  #indicatorsOfApp(): IndicatorService | undefined {
    for (const { providers } of this.modules.values()) {
      for (const { name, instance } of providers.values()) {
        if (name === INDICATOR_SERVICE) return instance as unknown as IndicatorService;
      }
    }
    return undefined;
  }
}
