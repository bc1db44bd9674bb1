import type * as TerminusPackage from '@nestjs/terminus';
import { Inject, Injectable } from '@nestjs/common';
import { LazyModuleLoader, ModulesContainer } from '@nestjs/core';
import type { HealthCheckService } from '@nestjs/terminus';
import { loaded, refuseMissing } from '../../contract/options/peers.js';

const TERMINUS = '@nestjs/terminus';

/** Whether @nestjs/terminus is installed. If not, it may be a part of a bundle: see {@link loadTerminus}. */
export function hasTerminus(): boolean {
  const { resolve } = import.meta as Partial<ImportMeta>;
  try {
    return resolve?.(TERMINUS) !== undefined; // CommonJS has no such function
  } catch {
    return false;
  }
}

/** @throws ClusterConfigurationError if it is not installed. */
async function loadTerminus(): Promise<typeof TerminusPackage> {
  const install = `npm install ${TERMINUS} (with Nest 11: ${TERMINUS}@11)`;
  const found = await loaded(TERMINUS, import('@nestjs/terminus'));
  return found ?? refuseMissing('health', `${TERMINUS}, which is not installed; run ${install}`);
}

/** The service of terminus whose method shows which version is installed. */
interface IndicatorService {
  check(key: string): object;
}

/** The name of that service, to find it in the app if this package has not loaded terminus. */
const INDICATOR_SERVICE = 'HealthIndicatorService';

/** Loads @nestjs/terminus only if the health endpoints are on, because it may not be installed. */
@Injectable()
export class Terminus {
  #indicators: IndicatorService | undefined;

  constructor(
    @Inject(LazyModuleLoader) private readonly loader: LazyModuleLoader,
    @Inject(ModulesContainer) private readonly modules: ModulesContainer,
  ) {}

  /** @throws ClusterConfigurationError if terminus is not installed. */
  async load(): Promise<HealthCheckService> {
    const terminus = await loadTerminus();
    const { HealthCheckService, HealthIndicatorService, TerminusModule } = terminus;
    const module = await this.loader.load(
      // The logger of terminus would write the whole report at each probe while something is down.
      () => TerminusModule.forRoot({ logger: false }),
      { logger: false },
    );
    this.#indicators = module.get(HealthIndicatorService);
    return module.get(HealthCheckService);
  }

  /** Whether terminus knows the status `degraded`. A version before 12 drops degraded reports. */
  get knowsDegraded(): boolean {
    const indicators = (this.#indicators ??= this.#indicatorsOfApp());
    return indicators !== undefined && 'degraded' in indicators.check('');
  }

  /** The service in an app that uses terminus itself, without the endpoints of this package. */
  #indicatorsOfApp(): IndicatorService | undefined {
    for (const { providers } of this.modules.values()) {
      for (const { name, instance } of providers.values()) {
        if (name === INDICATOR_SERVICE) return instance as unknown as IndicatorService;
      }
    }
    return undefined;
  }
}
