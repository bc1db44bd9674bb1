import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { NODE_SENSITIVE } from './projects.js';
import { sensitiveNodes } from './support/installed-nodes.js';

/** Projects that start no processes: they run first, on all cores. */
const computes = { maxWorkers: availableParallelism(), sequence: { groupOrder: 0 } };

/** Projects with real processes. They mostly wait, so they run more files than there are cores. */
const processes = {
  globalSetup: ['support/quick-packages.mjs'],
  maxWorkers: 5,
  sequence: { groupOrder: 1 },
  // Longer than a test waits for a single event, so that the test itself says what is missing.
  testTimeout: 120_000,
  hookTimeout: 120_000,
  // In CI a failed test is run again. `support/run-reporter.ts` lists and limits such tests.
  retry: process.env['CI'] ? 1 : 0,
};

/** The settings of each project, which is a folder. `npm test` runs the first three. */
const NEEDS = {
  // All files share their modules: to load them for each file takes longer than the tests.
  unit: {
    ...computes,
    isolate: false,
    setupFiles: ['unit/support/restore.ts'],
    testTimeout: 15_000,
  },
  // One file computes for minutes. It runs together with the projects that mostly wait.
  simulation: { maxWorkers: processes.maxWorkers, sequence: processes.sequence },
  integration: processes,
  // It takes the longest.
  thorough: processes,
  // Each of its two files needs a core.
  seconds: { ...processes, maxWorkers: 2, sequence: { groupOrder: 2 } },
  // It needs a machine that does nothing else.
  timed: { ...processes, maxWorkers: 1, fileParallelism: false, sequence: { groupOrder: 3 } },
  // It installs packages.
  packaging: {
    ...processes,
    globalSetup: [...processes.globalSetup, 'packaging/support/pack-once.ts'],
    testTimeout: 240_000,
    hookTimeout: 240_000,
  },
};

/** `unit` includes `repo`: tests of documents, deploy files and layout need no processes either. */
const foldersOf = (name: string): string[] => [
  name,
  ...(name === 'unit' ? ['repo'] : []),
  `../packages/*/test/${name}`,
];

/** The file that receives the results of a run, as JSON. */
const report = process.env['TEST_REPORT'];

/** A project for each other Node that `TEST_NODES` lists. */
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
  // A fixture that a test imports shares the packages of the test; see `support/quick-packages.mjs`.
  resolve: { dedupe: ['nestjs-cluster', '@nestjs/common', '@nestjs/core'] },
  test: {
    root: import.meta.dirname,
    reporters: [
      'default',
      './support/run-reporter.ts',
      ...(report === undefined ? [] : [['json', { outputFile: report }] as ['json', object]]),
    ],
    projects: [
      ...Object.entries(NEEDS).map(([name, needs]) => ({
        extends: true as const,
        test: {
          name,
          include: foldersOf(name).map((folder) => `${folder}/**/*.test.ts`),
          ...needs,
        },
      })),
      ...onOtherNodes,
    ],
  },
});
