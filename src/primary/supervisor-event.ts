import type { ReloadResult } from '../snapshot/index.js';
import type { LifecycleEvent } from './lifecycle.js';
import type { ScaleRequest } from './scaling.js';
import type { SuccessionEvent } from './succession.js';
import type { WorkerHandle } from './worker-handle.js';

/** Everything that can happen to a running cluster. */
export type SupervisorEvent =
  | LifecycleEvent
  | SuccessionEvent
  /** A timer of something that has no event of its own. */
  | { type: 'due'; action: () => void }
  | { type: 'heartbeat-due' }
  | { type: 'balance-due' }
  | { type: 'block-overdue'; worker: WorkerHandle }
  | { type: 'upkeep-due' }
  | { type: 'reload'; reason: string; done: (result: ReloadResult) => void }
  | ({ type: 'scale' } & ScaleRequest)
  | { type: 'stop'; reason: string; signalNumber: number };
