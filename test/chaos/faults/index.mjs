import { HOSTILE_FAULTS } from './hostile-faults.mjs';
import { MACHINE_FAULTS } from './machine-faults.mjs';
import { RELEASE_FAULTS } from './release-faults.mjs';
import { WORKER_FAULTS } from './worker-faults.mjs';

/** Every kind of fault. Each is undone, and recovered from, before the next. */
export const FAULTS = [...WORKER_FAULTS, ...RELEASE_FAULTS, ...MACHINE_FAULTS, ...HOSTILE_FAULTS];
