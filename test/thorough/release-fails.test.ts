import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { Releases } from '../support/releases.js';
import { generations } from '../support/replacements.js';
import { SteadyLoad } from '../support/steady-load.js';

const BARE = pathToFileURL(join(import.meta.dirname, '../fixtures/bare.mjs')).href;

const PER_SECOND = 200;

/** Longer than the slowest release takes to fail and to go back. */
const BACK_WITHIN_MS = 120_000;

interface Case {
  readonly diesMs: number;
  readonly workers: number;
  readonly reloads: number;
}

const CASES: readonly Case[] = [
  // While it is rolled out, and once it is everywhere.
  { diesMs: 3_000, workers: 4, reloads: 2 },
  { diesMs: 5_000, workers: 2, reloads: 1 },
];

describe('a release whose workers die', () => {
  afterEach(stopAll);

  it.each(CASES)(
    '$diesMs ms after they are ready is taken back, with $workers workers, $reloads times',
    async ({ diesMs, workers, reloads }) => {
      const releases = new Releases();
      releases.add('good', `await import('${BARE}');`);
      releases.pointTo('good');
      const cluster = await ClusterProcess.start({
        program: join(releases.current, 'main.mjs'),
        cwd: releases.current,
        options: { workers },
        env: { PWD: releases.current },
      });
      const load = new SteadyLoad(cluster.url, ['/'], PER_SECOND);

      for (let generation = 1; generation <= reloads; generation += 1) {
        const name = `bad-${generation}`;
        releases.add(
          name,
          `await import('${BARE}'); setTimeout(() => process.exit(3), ${diesMs});`,
        );
        releases.pointTo(name);
        cluster.kill('SIGHUP');
        await eventually(
          `the end of generation ${generation}`,
          () =>
            cluster
              .all('reload-ended')
              .filter((each) => each['generation'] === generation && each.level === 'error'),
          (lines) => lines.length === 1,
          BACK_WITHIN_MS,
        );
        await eventually(
          'workers of the release before',
          () => generations(cluster),
          (all) => all.length === workers && all.every(([, each]) => each === 0),
        );
      }

      await load.stop();
      const lost = load.lost.length / (load.lost.length + load.answered);
      expect(lost).toBeLessThanOrEqual(0.01);
      expect(cluster.all('reload-reverting').length).toBeLessThanOrEqual(reloads);
    },
    10 * BACK_WITHIN_MS,
  );
});
