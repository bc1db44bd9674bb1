import {
  GatewayTimeoutException,
  HttpException,
  InternalServerErrorException,
  ServiceUnavailableException,
} from '@nestjs/common';

/**
 * Why a call was not started: the queue was full, the call waited too long, the remote queue cannot be
 * reached, or the process is ending.
 */
export type TaskRejection = 'queue-full' | 'queue-timeout' | 'queue-unavailable' | 'closing';

const REJECTIONS: Readonly<Record<TaskRejection, string>> = {
  'queue-full': 'too many calls are waiting',
  'queue-timeout': 'it waited too long for a thread',
  'queue-unavailable': 'its queue is unreachable',
  closing: 'this process is shutting down',
};

/** A `@CpuBound()` call was not started: 503, with `Retry-After`. The caller may make it again. */
export class TaskRejectedException extends ServiceUnavailableException {
  /** The value of `Retry-After`, in seconds. A queue that is full has room again once a call ends. */
  readonly retryAfterSeconds = 1;

  constructor(
    readonly task: string,
    readonly reason: TaskRejection,
    /** The part of the message that says what did not happen. */
    did = 'was not started',
  ) {
    super(`${task} ${did}: ${REJECTIONS[reason]}`);
  }
}

/** A `@CpuBound()` call ran for longer than `timeoutMs` and was ended: 504. */
export class TaskTimeoutException extends GatewayTimeoutException {
  constructor(
    readonly task: string,
    readonly timeoutMs: number,
  ) {
    super(`${task} did not end within ${timeoutMs} ms`);
  }
}

/** nginx's status "client closed request". It is not sent, because the client has disconnected. */
const CLIENT_CLOSED_REQUEST = 499;

/** A `@CpuBound()` call was ended or never begun, because its client disconnected or the process ends. */
export class TaskAbortedException extends HttpException {
  constructor(readonly task: string) {
    super(`${task} was aborted`, CLIENT_CLOSED_REQUEST);
  }
}

/**
 * The thread that ran a `@CpuBound()` call ended: 500. Causes are an uncaught error, lack of memory
 * (`cause.code` is `ERR_WORKER_OUT_OF_MEMORY`) and `process.exit()`.
 */
export class ThreadLostException extends InternalServerErrorException {
  constructor(
    readonly task: string,
    cause: unknown,
  ) {
    super(`the thread of ${task} was lost`, { cause });
  }
}
