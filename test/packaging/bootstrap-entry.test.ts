import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { getJson, request } from '../support/http-client.js';
import { packed } from './support/tarball.js';
import { dependencies, TemporaryProject } from './support/temporary-project.js';

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
