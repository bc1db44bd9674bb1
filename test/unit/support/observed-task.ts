import type { Task } from '../../../src/offload/run/runner.interface.js';

export const TASK: Task = {
  name: 'Cats.count',
  index: 0,
  timeoutMs: 30_000,
  queueTimeoutMs: 5_000,
  abortOnDisconnect: false,
  queue: undefined,
};
