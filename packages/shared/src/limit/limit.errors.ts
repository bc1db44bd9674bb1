import { ServiceUnavailableException } from '@nestjs/common';

/** A call of `ClusterLimit` got no place, because all are taken or the hub cannot be used: 503. */
export class ClusterLimitException extends ServiceUnavailableException {
  /** In how many seconds a place is likely to be free. */
  readonly retryAfterSeconds = 1;

  /** @param cause the error of the hub; `undefined` if all places are taken. */
  constructor(
    readonly limit: string,
    readonly key: string,
    cause?: Error,
  ) {
    const why = cause === undefined ? 'has no free place' : 'cannot be checked now';
    super(`the limit '${limit}' ${why}; try again later`, { cause });
  }
}
