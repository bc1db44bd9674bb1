import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { beforeEach, describe, expect, it } from 'vitest';
import { WaitingClient } from '../../../../src/offload/admission/waiting-client.js';
import { TaskRejectedException } from '../../../../src/offload/offload.exceptions.js';
import { TASK } from '../../support/fake-runner.js';

let response: ServerResponse;
beforeEach(() => void (response = new ServerResponse(new IncomingMessage(new Socket()))));

/** Refuses a call of the client that waits for this response. */
async function refuse(retryAfterSeconds: number): Promise<void> {
  const link = {
    followScopes() {},
    scope: { waiting: response } as never,
    watchClient: () => () => {},
  };
  const error = new TaskRejectedException(TASK.name, 'queue-full', retryAfterSeconds);
  const submit = () => Promise.reject(error);
  await expect(new WaitingClient(link).call({ submit }, TASK, [])).rejects.toBe(error);
}

describe('the Retry-After of a refused call', () => {
  it.each<[number, string | undefined]>([
    [503, '7'],
    [200, undefined],
    [429, undefined],
    [500, undefined],
    [504, undefined],
  ])('in a response with %i is %s', async (status, expected) => {
    await refuse(7);
    expect(response.writeHead(status, 'Busy', { a: '1' })).toBe(response);
    expect(response.getHeader('Retry-After')).toBe(expected);
    expect([response.statusCode, response.statusMessage]).toEqual([status, 'Busy']);
  });

  it('is left to the app where that has set one', async () => {
    await refuse(7);
    response.setHeader('Retry-After', '60');
    expect(response.writeHead(503).getHeader('Retry-After')).toBe('60');
  });
});
