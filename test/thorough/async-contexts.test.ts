import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';

const PRELOAD = join(import.meta.dirname, '../fixtures/preload/tell-context-frames.cjs');

/** Nodes before 24 have no such class. */
const FINE = /context frames: (?:fast|none in this Node)/;

afterEach(stopAll);

it('a worker enters an asynchronous context by code that V8 can optimise', async () => {
  const cluster = await ClusterProcess.start({
    program: 'installedSample',
    options: { workers: 1 },
    execArgv: ['--expose-internals', '--allow-natives-syntax', '--require', PRELOAD],
  });

  process.kill(cluster.workerPids[0]!, 'SIGUSR2');
  await cluster.until('its context frames', () => /context frames: /.test(cluster.output));
  expect(cluster.output).toMatch(FINE);
});
