import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const PRELOAD = join(import.meta.dirname, '../fixtures/preload/note-loads.mjs');
const DIST = pathToFileURL(join(import.meta.dirname, '../../dist/')).href;

/** The modules that a process has loaded, without what packages `require()` themselves. */
interface Loads {
  /** Files in `src`. */
  readonly own: readonly string[];
  readonly packages: readonly string[];
  readonly builtins: readonly string[];
}

afterEach(stopAll);

it('loads in the primary and in a worker no more than they need to serve', async () => {
  const file = join(temporaryDirectory(), 'loads');
  const cluster = await ClusterProcess.start({
    program: 'installedSample',
    options: { workers: 1 },
    execArgv: ['--import', pathToFileURL(PRELOAD).href],
    env: { LOADS: file, CLUSTER_OFFLOAD: 'inline' },
  });
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  const primary = loadsOf(cluster.child.pid!, lines);
  const worker = loadsOf(cluster.workerPids[0]!, lines);

  expect(primary.packages).toEqual(['valibot']);
  expect(primary.own).toContain('primary/supervisor.ts');
  expect(
    primary.own.filter((path) => /^(worker|tools|offload|observe\/(health|metrics))\//.test(path)),
  ).toEqual([]);
  for (const name of ['node:http', 'node:https', 'node:inspector', 'node:tls']) {
    expect(primary.builtins).not.toContain(name);
  }

  expect(worker.packages).toContain('@nestjs/core');
  for (const name of ['piscina', 'commander', 'autocannon']) {
    expect(worker.packages).not.toContain(name);
  }
  expect(
    worker.own.filter((path) => /^(primary|decide|tools|observe\/admin)\/|standalone/.test(path)),
  ).toEqual([]);
});

/** The sources of a bundle, which has the name of each in a comment. */
function sourcesOf(url: string): string[] {
  const bundle = readFileSync(new URL(url), 'utf8');
  return [...bundle.matchAll(/^\/\/ src\/(\S+)$/gm)].map(([, source]) => source!);
}

function loadsOf(pid: number, lines: readonly string[]): Loads {
  const urls = lines
    .filter((line) => line.startsWith(`${pid} `))
    .map((line) => line.slice(`${pid} `.length));
  const packages = urls.flatMap(
    (url) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? [],
  );
  return {
    own: urls.filter((url) => url.startsWith(DIST)).flatMap(sourcesOf),
    packages: [...new Set(packages)],
    builtins: urls.filter((url) => url.startsWith('node:')),
  };
}
