import type { WorkerId } from './cluster-state.js';

/** A timer. A worker, a slot or the cluster has at most one timer of each type. */
export type Timer =
  | { readonly type: WorkerTimer; readonly worker: WorkerId }
  | { readonly type: 'start-due'; readonly slot: number }
  | { readonly type: 'observation-over' }
  | { readonly type: 'lame-duck-over' }
  | { readonly type: 'lease-due' };

export type WorkerTimer =
  | 'ready-overdue'
  | 'stop-overdue'
  | 'exit-overdue'
  | 'leave-due'
  | 'recovered'
  | 'block-overdue'
  | 'canary-over'
  | 'check-overdue'
  | 'verify-overdue';
