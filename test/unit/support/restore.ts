import { afterEach, vi } from 'vitest';

// All files share their modules and globals, so no fake may outlast its test.
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
});
