import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: import.meta.dirname,
    projects: [
      { extends: true, test: { name: 'unit', include: ['unit/**/*.test.ts'] } },
      {
        extends: true,
        test: {
          name: 'integration',
          globalSetup: ['support/global-setup.ts'],
          include: ['integration/**/*.test.ts'],
          // Real processes on few cores: files one after the other, generous limits.
          fileParallelism: false,
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
          testTimeout: 180_000,
          hookTimeout: 180_000,
        },
      },
    ],
  },
});
