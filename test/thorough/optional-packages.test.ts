import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, type StartOptions, stopAll } from '../support/cluster-process.js';
import { request } from '../support/http-client.js';

afterEach(stopAll);

const PRELOAD = join(import.meta.dirname, '../fixtures/preload/packages.mjs');
const CLIENTS = ['@prometheus-io/client', 'prom-client'];
const PACKAGES = ['@nestjs/terminus', ...CLIENTS];

/** An app in whose node_modules these are not. */
function startWithout(
  packages: readonly string[],
  moduleOptions: object,
  { env, ...start }: StartOptions = {},
): ClusterProcess {
  return new ClusterProcess({
    ...start,
    options: { workers: 1, ...start.options },
    execArgv: ['--import', pathToFileURL(PRELOAD).href],
    env: {
      WITHOUT: packages.join(','),
      TEST_MODULE_OPTIONS: JSON.stringify(moduleOptions),
      ...env,
    },
  });
}

describe('an app without @nestjs/terminus and a Prometheus client', () => {
  it.each([
    { program: 'app', env: behaviour('offload-answers'), path: '/answers/decorated/7?who=tom' },
    { program: 'nest11', env: {}, path: '/hello' },
  ])(
    'serves, and offloads, where health and metrics are off ($program)',
    async ({ program, env, path }) => {
      const off = { health: false, metrics: false };
      const cluster = startWithout(PACKAGES, off, { program, env: { ...env, TEST_GATES: '' } });
      await cluster.event('listening');
      expect((await request(cluster.url, path)).status).toBeLessThan(300);
      expect((await request(cluster.url, '/health')).status).toBe(404);
      expect((await request(cluster.url, '/metrics')).status).toBe(404);
    },
  );
});

describe('one that is missing', () => {
  it.each([
    {
      packages: ['@nestjs/terminus'],
      group: 'health',
      other: 'metrics',
      needs:
        '@nestjs/terminus, which is not installed; run npm install @nestjs/terminus (with Nest 11: @nestjs/terminus@11)',
    },
    {
      packages: CLIENTS,
      group: 'metrics',
      other: 'health',
      needs:
        'a Prometheus client, but none is installed; run npm install prom-client, or @prometheus-io/client on Node 22 or later',
    },
  ])(
    'ends the start where $group is on, in one line that says what to do',
    async ({ packages, group, other, needs }) => {
      const cluster = startWithout(packages, { [other]: false });
      expect(await cluster.exited()).toEqual({ code: 78, signal: null });
      expect(cluster.all('failed').map(({ message }) => message)).toEqual([
        `giving up (exit code 78): ${group} of ClusterModule needs ${needs}; or set ${group}: false in forRoot()`,
      ]);
    },
  );

  it.each([
    { packages: ['@nestjs/terminus'], off: { health: false }, path: '/metrics' },
    { packages: CLIENTS, off: { metrics: false }, path: '/health' },
  ])('takes nothing from the others: $packages', async ({ packages, off, path }) => {
    const cluster = startWithout(packages, off);
    await cluster.event('listening');
    expect((await request(cluster.url, path)).status).toBe(200);
  });
});
