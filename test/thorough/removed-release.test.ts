import { cpSync, mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { request } from '../support/http-client.js';
import { QUICK_PACKAGES } from '../support/quick-packages.mjs';
import { Releases } from '../support/releases.js';
import { scrape } from '../support/scrape.js';

const fixtures = join(import.meta.dirname, '../fixtures');

afterEach(stopAll);

/** A release as a deploy makes it: the app, its behaviour, and this package are its own copies. */
function addRelease(directory: string): void {
  const packages = join(directory, 'node_modules');
  mkdirSync(packages, { recursive: true });
  for (const name of readdirSync(QUICK_PACKAGES)) {
    if (name !== 'nestjs-cluster') symlinkSync(join(QUICK_PACKAGES, name), join(packages, name));
  }
  const own = {
    [join(QUICK_PACKAGES, 'nestjs-cluster')]: 'node_modules/nestjs-cluster',
    [join(fixtures, 'app.mjs')]: 'main.mjs',
    [join(fixtures, 'declare.mjs')]: 'declare.mjs',
    [join(fixtures, 'decorate.mjs')]: 'decorate.mjs',
    [join(fixtures, 'behaviours/locks.mjs')]: 'locks.mjs',
  };
  for (const [from, to] of Object.entries(own)) {
    cpSync(from, join(directory, to), { recursive: true });
  }
}

it('answers commands, begins the hub, and begins threads after its first release was removed', async () => {
  const releases = new Releases();
  const { root, current } = releases;
  for (const name of ['rel1', 'rel2']) addRelease(join(root, name));
  releases.pointTo('rel1');
  const preload = (name: string) => [
    '--import',
    pathToFileURL(join(fixtures, 'preload', name)).href,
  ];
  const cluster = await ClusterProcess.start({
    program: 'main.mjs',
    cwd: current,
    options: {
      workers: 1,
      control: { path: join(root, 'control') },
      admin: { port: 0, host: '127.0.0.1', token: false },
    },
    execArgv: preload('hub-thread.mjs'),
    env: {
      PWD: current,
      XDG_RUNTIME_DIR: root,
      BEHAVE: join(current, 'locks.mjs'),
      TEST_IMPORT: 'lock',
    },
  });
  releases.pointTo('rel2');
  cluster.kill('SIGHUP');
  expect(await cluster.event('reload-ended')).toMatchObject({ outcome: 'completed' });
  rmSync(join(root, 'rel1'), { recursive: true });

  const status = await request(`unix:${join(root, 'control')}`, '/v1/status', {
    headers: { Host: 'localhost' },
  });
  expect(status).toMatchObject({ outcome: 'ok' });
  expect(JSON.parse(status.body)).toMatchObject({ pid: cluster.pid, version: expect.any(String) });

  // The worker was forked while the first release was there.
  expect((await request(cluster.url, '/thread')).body).toBe('done');

  // The first use of the hub, whose thread is of the current release. It restarts without its files.
  const locked = async () => (await request(cluster.url, '/exclusive')).body;
  expect(await locked()).toBe('done');
  rmSync(join(root, 'rel2'), { recursive: true });

  cluster.kill('SIGURG');
  await cluster.until('a hub that ended', () =>
    cluster.output.includes('the thread of @nestjs-cluster/shared ended'),
  );
  expect(await locked()).toBe('done');

  // The first scrape.
  expect((await scrape(cluster.adminUrl)).values('nestjs_cluster_worker_up')).toEqual([1]);
});
