import { defineConfig } from 'vitest/config';
import { PROJECTS } from './projects.js';
import { LongestFirst } from './support/longest-first.js';

/** Real processes on few cores. They wait more than they work: so more of them than cores. */
const processes = {
  globalSetup: ['support/global-setup.ts'],
  // Above what a test waits for one thing: so that it says for which.
  testTimeout: 120_000,
  hookTimeout: 120_000,
};

/** What a project needs beside its folder; see the table of them. */
const NEEDS = {
  // One set of modules for all files: to load them anew for each takes longer than the tests.
  unit: { isolate: false, testTimeout: 60_000 },
  simulation: {},
  integration: { ...processes, maxWorkers: 5, sequence: { groupOrder: 1 } },
  thorough: { ...processes, maxWorkers: 5, sequence: { groupOrder: 1 } },
  timed: { ...processes, fileParallelism: false, sequence: { groupOrder: 2 } },
  packaging: {
    ...processes,
    maxWorkers: 5,
    sequence: { groupOrder: 1 },
    testTimeout: 240_000,
    hookTimeout: 240_000,
  },
};

/** Where the figures of a run go, as JSON. */
const report = process.env['TEST_REPORT'];

export default defineConfig({
  // A fixture that a test imports shares the packages of the test; see `support/quick-packages.ts`.
  resolve: { dedupe: ['nestjs-cluster', '@nestjs/common', '@nestjs/core'] },
  test: {
    root: import.meta.dirname,
    sequence: { sequencer: LongestFirst },
    reporters: [
      'default',
      './support/left-out-reporter.ts',
      ...(report === undefined ? [] : [['json', { outputFile: report }] as ['json', object]]),
    ],
    projects: PROJECTS.map(({ name }) => ({
      extends: true as const,
      test: { name, include: [`${name}/**/*.test.ts`], ...NEEDS[name] },
    })),
  },
});
