import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { getJson, request } from '../support/http-client.js';
import { foreignImportsOf, packageNameOf } from './support/imports.js';
import { packed } from './support/tarball.js';
import { dependencies, ROOT, TemporaryProject } from './support/temporary-project.js';

const { peerDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  peerDependencies: object;
};
const PEERS = Object.keys(peerDependencies);

/** The package with none of its peers: what it can load there is what it needs. */
let project: TemporaryProject;

beforeAll(async () => {
  project = await TemporaryProject.create();
  // That npm installs it is in installed.test.ts and surface.test.ts.
  await project.unpack(packed().path, 'nestjs-cluster');
  await project.link(dependencies(), ['']);
  await project.write({
    // The app, and Nest with it, is outside of this project.
    'main.mjs': `
      import { bootstrap } from 'nestjs-cluster/bootstrap';
      await bootstrap(
        async () => (await import(process.env.APP)).createApp(),
        JSON.parse(process.env.TEST_OPTIONS),
      );
    `,
  });
});

afterEach(stopAll);
afterAll(() => project.remove());

describe('nestjs-cluster/bootstrap', () => {
  it('can load no peer but Nest’s logger, and the Prometheus clients for the admin listener', () => {
    const entry = project.path('node_modules/nestjs-cluster/dist/bootstrap/index.js');
    const foreign = [...foreignImportsOf(entry)];

    expect(foreign).toContain('node:cluster');
    expect(
      foreign
        .map(packageNameOf)
        .filter((name) => PEERS.includes(name))
        .toSorted(),
    ).toEqual(['@nestjs/common', '@prometheus-io/client', 'prom-client']);
  });

  it.each([
    { role: 'primary', workers: 2 },
    { role: 'standalone process', workers: 0 },
  ])('runs a $role that has no Nest', async ({ workers }) => {
    const app = join(import.meta.dirname, 'fixtures/app.mjs');
    const cluster = await ClusterProcess.start({
      program: project.path('main.mjs'),
      cwd: project.directory,
      options: { workers },
      env: { APP: pathToFileURL(app).href },
    });

    expect((await request(cluster.url, '/hello')).body).toBe('Hello World!');
    const { status, body } = await getJson(cluster.url, '/health');
    expect([status, body.details.cluster.desired]).toEqual([200, Math.max(workers, 1)]);

    cluster.kill('SIGTERM');
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
  });
});
