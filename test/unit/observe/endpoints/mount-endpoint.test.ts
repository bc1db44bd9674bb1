import type { AbstractHttpAdapter } from '@nestjs/core';
import { describe, expect, it } from 'vitest';
import {
  type EndpointRequest,
  type EndpointResponse,
  mountEndpoint,
} from '../../../../src/observe/endpoints/mount-endpoint.js';

const PLAIN: EndpointResponse = { status: 200, contentType: 'text/plain', body: 'hello' };

/** An adapter that keeps what it is told; `request` answers with all of it. */
function start(
  type: 'express' | 'fastify',
  respond: (request: EndpointRequest) => Promise<EndpointResponse>,
) {
  const calls: unknown[][] = [];
  let handler: ((request: EndpointRequest, response: unknown) => void) | undefined;
  const record =
    (name: string) =>
    (_response: unknown, ...args: unknown[]) =>
      void calls.push([name, ...args]);
  const adapter = {
    getType: () => type,
    get: (path: string, handle: typeof handler) => {
      calls.push(['get', path]);
      handler = handle;
    },
    setHeader: record('setHeader'),
    reply: record('reply'),
    status: record('status'),
    end: record('end'),
  } as unknown as AbstractHttpAdapter;
  mountEndpoint(adapter, '/metrics', respond);
  return async (headers: EndpointRequest['headers'] = {}) => {
    calls.splice(0);
    handler!({ headers }, {});
    await new Promise(setImmediate);
    return calls;
  };
}

describe.each(['express', 'fastify'] as const)('an endpoint on %s', (type) => {
  it('answers a text with its status, its type and its headers, and is not stored', async () => {
    const request = start(type, async () => ({
      ...PLAIN,
      status: 503,
      headers: { Vary: 'Accept' },
    }));
    expect(await request()).toEqual([
      ['setHeader', 'Content-Type', 'text/plain'],
      ['setHeader', 'Cache-Control', 'no-store'],
      ['setHeader', 'Vary', 'Accept'],
      ['reply', 'hello', 503],
    ]);
  });

  it('answers bytes as they are: Express would send them as JSON', async () => {
    const body = Buffer.from('gzipped');
    const request = start(type, async () => ({ ...PLAIN, body }));
    expect((await request()).slice(2)).toEqual(
      type === 'fastify'
        ? [['reply', body, 200]]
        : [
            ['status', 200],
            ['end', body],
          ],
    );
  });

  it('is given the headers of the request', async () => {
    const request = start(type, async ({ headers }) => ({
      ...PLAIN,
      body: String(headers['accept']),
    }));
    expect((await request({ accept: 'text/plain' })).at(-1)).toEqual(['reply', 'text/plain', 200]);
  });

  it('answers 500 and not what went wrong', async () => {
    const request = start(type, () => Promise.reject(new Error('/secret/path')));
    const calls = await request();
    expect(calls).toContainEqual(['setHeader', 'Content-Type', 'text/plain; charset=utf-8']);
    expect(calls.at(-1)).toEqual(['reply', 'internal error\n', 500]);
    expect(JSON.stringify(calls)).not.toContain('secret');
  });
});
