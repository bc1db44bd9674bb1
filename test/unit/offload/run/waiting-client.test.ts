import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  TaskAbortedException,
  TaskRejectedException,
} from '../../../../src/offload/offload.exceptions.js';
import type { Submitter } from '../../../../src/offload/run/runner.interface.js';
import { WaitingClient } from '../../../../src/offload/run/waiting-client.js';
import { TASK } from '../../support/observed-task.js';

let response: ServerResponse;
beforeEach(() => void (response = new ServerResponse(new IncomingMessage(new Socket()))));

/** Makes a call for the client that waits for this response, or for none. */
function call(submit: Submitter['submit'], waiting: ServerResponse | undefined = response) {
  const link = {
    followScopes() {},
    scope: { waiting } as never,
    watchClient: (watched: ServerResponse, gone: () => void) => {
      if (watched === response) gone();
      return () => {};
    },
  };
  return new WaitingClient(link).call({ submit }, TASK, [1]);
}

async function refuse(
  error: Error = new TaskRejectedException(TASK.name, 'queue-full'),
): Promise<void> {
  await expect(call(() => Promise.reject(error))).rejects.toBe(error);
}

it('a call is told if its client disconnects, unless no client waits', async () => {
  const submit: Submitter['submit'] = async (_task, args, _contexts, watch) => {
    const events: unknown[] = [args];
    watch?.(() => events.push('gone'));
    return events;
  };
  expect(await call(submit)).toEqual([[1], 'gone']);
  response = undefined as never;
  expect(await call(submit)).toEqual([[1]]);
});

describe('the Retry-After of a refused call', () => {
  it.each<[number, string | undefined]>([
    [503, '1'],
    [200, undefined],
    [429, undefined],
    [500, undefined],
    [504, undefined],
  ])('in a response with %i is %s', async (status, expected) => {
    await refuse();
    expect(response.writeHead(status, 'Busy', { a: '1' })).toBe(response);
    expect(response.getHeader('Retry-After')).toBe(expected);
    expect([response.statusCode, response.statusMessage]).toEqual([status, 'Busy']);
  });

  it('is not sent after another failure', async () => {
    await refuse(new TaskAbortedException(TASK.name));
    expect(response.writeHead(503).hasHeader('Retry-After')).toBe(false);
  });

  it('is left to the app where that has set one', async () => {
    await refuse();
    response.setHeader('Retry-After', '60');
    expect(response.writeHead(503).getHeader('Retry-After')).toBe('60');
  });
});
