import {
  GatewayTimeoutException,
  HttpException,
  InternalServerErrorException,
  ServiceUnavailableException,
} from '@nestjs/common';

/**
 * Why a call was not begun: the queue was full, it waited for too long, no
 * thread can be started, its queue cannot be reached, or the process is ending.
 */
export type TaskRejection =
  'queue-full' | 'queue-timeout' | 'unavailable' | 'queue-unavailable' | 'closing';

const REJECTIONS: Readonly<Record<TaskRejection, string>> = {
  'queue-full': 'too many calls are waiting',
  'queue-timeout': 'it waited too long for a thread',
  unavailable: 'no thread could be started',
  'queue-unavailable': 'its queue cannot be reached',
  closing: 'this process is ending',
};

/** A `@CpuBound()` call that was not begun: 503, with `Retry-After`. It may be made again. */
export class TaskRejectedException extends ServiceUnavailableException {
  constructor(
    readonly task: string,
    readonly reason: TaskRejection,
    /** When it is likely to be accepted, whole seconds from 1. */
    readonly retryAfterSeconds: number,
    /** What did not happen. */
    did = 'was not begun',
  ) {
    super(`${task} ${did}: ${REJECTIONS[reason]}`);
  }
}

/** A `@CpuBound()` call ran for longer than its `timeoutMs` and was ended: 504. */
export class TaskTimeoutException extends GatewayTimeoutException {
  constructor(
    readonly task: string,
    readonly timeoutMs: number,
  ) {
    super(`${task} did not end within ${timeoutMs} ms`);
  }
}

/** nginx's "client closed request"; nobody is there to read it. */
const CLIENT_CLOSED_REQUEST = 499;

/** Everyone who waited for a `@CpuBound()` call went away, or the process ends: it was ended, or never begun. */
export class TaskAbortedException extends HttpException {
  constructor(readonly task: string) {
    super(`${task} was aborted`, CLIENT_CLOSED_REQUEST);
  }
}

/**
 * The thread that ran a `@CpuBound()` call died: of an error that nobody caught in it, out of
 * memory (`cause.code` is `ERR_WORKER_OUT_OF_MEMORY`), or by `process.exit()`. 500.
 */
export class ThreadLostException extends InternalServerErrorException {
  constructor(
    readonly task: string,
    cause: unknown,
  ) {
    super(`the thread of ${task} was lost`, { cause });
  }
}
