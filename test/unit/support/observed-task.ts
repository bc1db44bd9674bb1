import type { Task, TaskObserver, TaskOutcome } from '../../../src/offload/run/runner.interface.js';

export const TASK: Task = {
  name: 'Cats.count',
  index: 0,
  timeoutMs: 30_000,
  queueTimeoutMs: 5_000,
  abortOnDisconnect: false,
  queue: undefined,
};

/** Keeps what it observes. */
export class KeepingObserver implements TaskObserver {
  readonly waitedMs: number[] = [];
  readonly ranMs: number[] = [];
  readonly outcomes: TaskOutcome[] = [];

  began(_task: Task, waitedMs: number): void {
    this.waitedMs.push(waitedMs);
  }

  ran(_task: Task, ms: number): void {
    this.ranMs.push(ms);
  }

  ended(_task: Task, outcome: TaskOutcome): void {
    this.outcomes.push(outcome);
  }
}
