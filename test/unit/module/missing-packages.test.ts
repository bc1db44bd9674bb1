import { expect, it, vi } from 'vitest';
import { ClusterConfigurationError } from '../../../src/contract/errors/errors.js';
import { ClusterModule } from '../../../src/module/cluster.module.js';
import { HealthEndpoints } from '../../../src/observe/health/health.endpoints.js';
import { MetricsEndpoint } from '../../../src/observe/metrics/metrics.endpoint.js';
import { appOf } from '../support/nest-app.js';

/** Starts an app in which the packages of both endpoints are missing, or broken. */
async function refusal(metrics: Error, health: Error): Promise<unknown> {
  vi.spyOn(MetricsEndpoint.prototype, 'measure').mockRejectedValue(metrics);
  vi.spyOn(HealthEndpoints.prototype, 'prepare').mockRejectedValue(health);
  return appOf({ imports: [ClusterModule.forRoot()] }).catch((error: unknown) => error);
}

it('names all packages that are missing in one error', async () => {
  const error = await refusal(
    new ClusterConfigurationError('metrics needs prom-client'),
    new ClusterConfigurationError('health needs @nestjs/terminus'),
  );
  expect(error).toBeInstanceOf(ClusterConfigurationError);
  expect((error as Error).message).toBe(
    'metrics needs prom-client | health needs @nestjs/terminus',
  );
});

it('throws any other error as it is', async () => {
  const broken = new SyntaxError('prom-client is broken');
  expect(await refusal(broken, new ClusterConfigurationError('health needs …'))).toBe(broken);
});
