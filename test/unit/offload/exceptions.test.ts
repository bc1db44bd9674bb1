import { expect, it } from 'vitest';
import {
  TaskAbortedException,
  TaskRejectedException,
  TaskTimeoutException,
  ThreadLostException,
} from '../../../src/offload/offload.exceptions.js';

const CAUSE = new Error('out of memory');

it.each([
  [new TaskRejectedException('hash', 'queue-full'), 503, 'was not started: too many calls are'],
  [new TaskTimeoutException('hash', 50), 504, 'hash did not finish within 50 ms'],
  [new TaskAbortedException('hash'), 499, 'hash was aborted'],
  [new ThreadLostException('hash', CAUSE), 500, 'the thread running hash died'],
])('%s', (exception, status, message) => {
  expect(exception.getStatus()).toBe(status);
  expect(exception.message).toContain(message);
  expect(exception.cause).toBe(status === 500 ? CAUSE : undefined);
});
