import { defineConfig } from 'vitest/config';
import { PROJECTS } from './projects.js';

/** Real processes on few cores. */
const processes = {
  globalSetup: ['support/global-setup.ts'],
  testTimeout: 60_000,
  hookTimeout: 60_000,
};

/** What a project needs beside its folder; see the table of them. */
const NEEDS = {
  // One set of modules for all files: to load them anew for each takes longer than the tests.
  unit: { isolate: false },
  integration: { ...processes, maxWorkers: 3, sequence: { groupOrder: 1 } },
  thorough: { ...processes, maxWorkers: 3, sequence: { groupOrder: 2 } },
  timed: { ...processes, fileParallelism: false, sequence: { groupOrder: 3 } },
  packaging: {
    ...processes,
    maxWorkers: 2,
    sequence: { groupOrder: 4 },
    testTimeout: 180_000,
    hookTimeout: 180_000,
  },
};

/** Where the figures of a run go, as JSON. */
const report = process.env['TEST_REPORT'];

export default defineConfig({
  test: {
    root: import.meta.dirname,
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
