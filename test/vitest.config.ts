import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { NODE_SENSITIVE, PROJECTS } from './projects.js';
import { sensitiveNodes } from './support/installed-nodes.js';
import { LongestFirst } from './support/longest-first.js';

/** Without processes, they have the machine first, and each core of it. */
const computes = { maxWorkers: availableParallelism(), sequence: { groupOrder: 0 } };

/** Real processes on few cores. They wait more than they work: so more of them than cores. */
const processes = {
  globalSetup: ['support/global-setup.ts'],
  maxWorkers: 5,
  sequence: { groupOrder: 1 },
  // Above what a test waits for one thing: so that it says for which.
  testTimeout: 120_000,
  hookTimeout: 120_000,
  // In CI a test has a second try; `support/flaky-reporter.ts` names it and bounds their number.
  retry: process.env['CI'] ? 1 : 0,
};

/** What a project needs beside its folder; see the table of them. */
const NEEDS = {
  // One set of modules for all files: to load them anew for each takes longer than the tests.
  unit: { ...computes, isolate: false, testTimeout: 60_000 },
  // One file that computes for minutes: beside those that wait.
  simulation: { maxWorkers: processes.maxWorkers, sequence: processes.sequence },
  integration: processes,
  thorough: processes,
  // They wait for most of their time: one disturbs no other.
  seconds: { ...processes, maxWorkers: 2, sequence: { groupOrder: 2 } },
  timed: { ...processes, maxWorkers: 1, fileParallelism: false, sequence: { groupOrder: 3 } },
  packaging: {
    ...processes,
    globalSetup: [...processes.globalSetup, 'packaging/support/pack-once.ts'],
    testTimeout: 240_000,
    hookTimeout: 240_000,
  },
};

/** Tests of documents, deploy and layout need no process either. */
const foldersOf = (name: string): string[] => (name === 'unit' ? [name, 'repo'] : [name]);

/** Where the figures of a run go, as JSON. */
const report = process.env['TEST_REPORT'];

/** One for each of those Nodes that `TEST_NODES` lists. */
const onOtherNodes = [...sensitiveNodes()].map(([major, path]) => ({
  extends: true as const,
  test: {
    ...processes,
    name: `node-${major}`,
    include: NODE_SENSITIVE.get(major)!.map((name) => `${name}.test.ts`),
    env: { TEST_NODE: path, TEST_RUN_AGAIN: 'yes' },
  },
}));

export default defineConfig({
  // A fixture that a test imports shares the packages of the test; see `support/quick-packages.ts`.
  resolve: { dedupe: ['nestjs-cluster', '@nestjs/common', '@nestjs/core'] },
  test: {
    root: import.meta.dirname,
    sequence: { sequencer: LongestFirst },
    reporters: [
      'default',
      './support/left-out-reporter.ts',
      './support/flaky-reporter.ts',
      ...(report === undefined ? [] : [['json', { outputFile: report }] as ['json', object]]),
    ],
    projects: [
      ...PROJECTS.map(({ name }) => ({
        extends: true as const,
        test: {
          name,
          include: foldersOf(name).map((folder) => `${folder}/**/*.test.ts`),
          ...NEEDS[name],
        },
      })),
      ...onOtherNodes,
    ],
  },
});
