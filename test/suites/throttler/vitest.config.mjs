import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    globals: true,
    root: process.env.SUITE,
    include: ['test/*.spec.mjs'],
    hookTimeout: 60_000,
    testTimeout: 60_000,
    // One copy of these modules, because Nest's modules load them too.
    server: {
      deps: { external: [/suites\/throttler/, /installed\/throttler\/test\/(app|utility)/] },
    },
  },
});
