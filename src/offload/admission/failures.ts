import {
  TaskAbortedException,
  TaskRejectedException,
  type TaskRejection,
  TaskTimeoutException,
  ThreadLostException,
} from '../offload.exceptions.js';
import type { Task, TaskOutcome } from '../task/task.js';

/** Why a call ended without a result. */
export interface Failure {
  readonly outcome: Exclude<TaskOutcome, 'completed'>;
  readonly error: unknown;
}

export function rejected(task: Task, reason: TaskRejection, retryAfterSeconds: number): Failure {
  return {
    outcome: reason === 'queue-timeout' ? 'queue_timeout' : 'rejected',
    error: new TaskRejectedException(task.name, reason, retryAfterSeconds),
  };
}

export function timedOut({ name, timeoutMs }: Task): Failure {
  return { outcome: 'timeout', error: new TaskTimeoutException(name, timeoutMs) };
}

export function aborted({ name }: Task): Failure {
  return { outcome: 'aborted', error: new TaskAbortedException(name) };
}

export function lost({ name }: Task, cause: unknown): Failure {
  return { outcome: 'thread_lost', error: new ThreadLostException(name, cause) };
}

export function failed(error: unknown): Failure {
  return { outcome: 'failed', error };
}
