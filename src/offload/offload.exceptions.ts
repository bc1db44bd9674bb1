import {
  GatewayTimeoutException,
  HttpException,
  InternalServerErrorException,
  ServiceUnavailableException,
} from '@nestjs/common';

/**
 * Why a call was not started: the queue was full, the call waited too long, the remote queue is
 * unreachable, or the process is shutting down.
 */
export type TaskRejection = 'queue-full' | 'queue-timeout' | 'queue-unavailable' | 'closing';

const REJECTIONS: Readonly<Record<TaskRejection, string>> = {
  'queue-full': 'too many calls are waiting',
  'queue-timeout': 'it waited too long for a thread',
  'queue-unavailable': 'its queue is unreachable',
  closing: 'this process is shutting down',
};

/** A `@CpuBound()` call was not started. Status 503, with `Retry-After`. The caller may retry. */
export class TaskRejectedException extends ServiceUnavailableException {
  /** The value of `Retry-After`, in seconds. A full queue has room as soon as a call ends. */
  readonly retryAfterSeconds = 1;

  constructor(
    readonly task: string,
    readonly reason: TaskRejection,
    /** The verb of the message. */
    did = 'was not started',
  ) {
    super(`${task} ${did}: ${REJECTIONS[reason]}`);
  }
}

/** A `@CpuBound()` call was terminated because it ran longer than `timeoutMs`. Status 504. */
export class TaskTimeoutException extends GatewayTimeoutException {
  constructor(
    readonly task: string,
    readonly timeoutMs: number,
  ) {
    super(`${task} did not finish within ${timeoutMs} ms`);
  }
}

/** nginx's status "client closed request". It is not sent, because the client has disconnected. */
const CLIENT_CLOSED_REQUEST = 499;

/** A `@CpuBound()` call was aborted, because its client disconnected or the process is shutting down. */
export class TaskAbortedException extends HttpException {
  constructor(readonly task: string) {
    super(`${task} was aborted`, CLIENT_CLOSED_REQUEST);
  }
}

/**
 * The thread died during a `@CpuBound()` call. Status 500. Caused by an uncaught error, lack of
 * memory (`cause.code` is `ERR_WORKER_OUT_OF_MEMORY`) or `process.exit()`.
 */
export class ThreadLostException extends InternalServerErrorException {
  constructor(
    readonly task: string,
    cause: unknown,
  ) {
    super(`the thread running ${task} died`, { cause });
  }
}
