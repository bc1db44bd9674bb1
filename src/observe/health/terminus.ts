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

/** The name of that service, to find it without loading terminus. */
const INDICATOR_SERVICE = 'HealthIndicatorService';

/** Loads @nestjs/terminus only if the health endpoints are on, because it may not be installed. */
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
      // The logger of terminus would write the whole report at each probe while something is down.
      () => TerminusModule.forRoot({ logger: false }),
      { logger: false },
    );
    return module.get(HealthCheckService);
  }

  /** Whether terminus, of this package or of the app, knows the status `degraded`. A version before 12 drops degraded reports. */
  get knowsDegraded(): boolean {
    return [...this.modules.values()]
      .flatMap(({ providers }) => [...providers.values()])
      .some(
        ({ name, instance }) =>
          name === INDICATOR_SERVICE &&
          'degraded' in (instance as unknown as IndicatorService).check(''),
      );
  }
}
