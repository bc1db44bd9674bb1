import { defineConfig } from 'vitest/config';

/** Tests of bounds that a promise names in seconds, and of what is measured: they have the machine to themselves. */
const TIMED = [
  'integration/chaos.test.ts',
  'integration/hang.test.ts',
  'integration/tune-measures.test.ts',
];

export default defineConfig({
  test: {
    root: import.meta.dirname,
    projects: [
      {
        extends: true,
        // One set of modules for all files: to load them anew for each takes longer than the tests.
        test: { name: 'unit', include: ['unit/**/*.test.ts'], isolate: false },
      },
      {
        extends: true,
        test: {
          name: 'integration',
          globalSetup: ['support/global-setup.ts'],
          include: ['integration/**/*.test.ts'],
          exclude: TIMED,
          // Real processes on few cores: two files at a time, generous limits.
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'timed',
          globalSetup: ['support/global-setup.ts'],
          include: TIMED,
          fileParallelism: false,
          sequence: { groupOrder: 2 },
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'packaging',
          globalSetup: ['support/global-setup.ts'],
          include: ['packaging/**/*.test.ts'],
          fileParallelism: false,
          sequence: { groupOrder: 3 },
          testTimeout: 180_000,
          hookTimeout: 180_000,
        },
      },
    ],
  },
});
