import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { ClusterProcess, stopAll } from '../../../../test/support/cluster-process.js';

const PLANTED = join(import.meta.dirname, '../fixtures/planted/main.mjs');

const NAMES = ['scheduled-jobs', 'throttler', 'cache', 'socket-io'];

afterEach(stopAll);

it('a cluster warns once of each finding when it starts', async () => {
  const cluster = await ClusterProcess.start({ program: PLANTED, options: { workers: 2 } });
  const names = () =>
    cluster
      .all('warning')
      .flatMap(({ message }) => /ignore: \['([\w-]+)'\]/.exec(message)?.[1] ?? []);
  await cluster.until('warnings', () => names().length >= NAMES.length);
  cluster.kill('SIGTERM');
  await cluster.exited();

  expect(names()).toEqual(NAMES);
});
