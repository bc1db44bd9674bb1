import type { AbstractHttpAdapter } from '@nestjs/core';
import { describe, expect, it } from 'vitest';
import {
  type EndpointRequest,
  type EndpointResponse,
  mountEndpoint,
  shareInFlight,
} from '../../../../src/observe/endpoints/mount-endpoint.js';
import { held } from '../../../support/held.js';

/** The calls of the adapter's methods for one request. */
async function answer(
  type: 'express' | 'fastify',
  respond: (request: EndpointRequest) => Promise<EndpointResponse>,
): Promise<unknown[][]> {
  const calls: unknown[][] = [];
  const record =
    (name: string) =>
    (_response: unknown, ...args: unknown[]) =>
      void calls.push([name, ...args]);
  const adapter = {
    getType: () => type,
    get: (_path: string, handle: (request: EndpointRequest, response: unknown) => void) =>
      handle({ headers: { accept: 'text/plain' } }, {}),
    setHeader: record('setHeader'),
    reply: record('reply'),
    status: record('status'),
    end: record('end'),
  } as unknown as AbstractHttpAdapter;
  mountEndpoint(adapter, '/metrics', respond);
  await new Promise(setImmediate);
  return calls;
}

describe.each(['express', 'fastify'] as const)('an endpoint on %s', (type) => {
  it('answers a text with its status, its type and its headers, and is not stored', async () => {
    const calls = await answer(type, async ({ headers }) => ({
      status: 503,
      contentType: 'text/plain',
      body: 'hello',
      headers: { Vary: String(headers['accept']) },
    }));
    expect(calls).toEqual([
      ['setHeader', 'Content-Type', 'text/plain'],
      ['setHeader', 'Cache-Control', 'no-store'],
      ['setHeader', 'Vary', 'text/plain'],
      ['reply', 'hello', 503],
    ]);
  });

  it('answers bytes as they are: Express would send them as JSON', async () => {
    const body = Buffer.from('gzipped');
    const calls = await answer(type, async () => ({ status: 200, contentType: 'a/b', body }));
    const bytes = [
      ['status', 200],
      ['end', body],
    ];
    expect(calls.slice(2)).toEqual(type === 'fastify' ? [['reply', body, 200]] : bytes);
  });

  it('answers 500 and not what went wrong', async () => {
    const calls = await answer(type, () => Promise.reject(new Error('/secret/path')));
    expect(calls.at(-1)).toEqual(['reply', 'internal error\n', 500]);
    expect(JSON.stringify(calls)).not.toContain('secret');
  });
});

describe('calls during a run', () => {
  /** Runs that end when they are told to. */
  function heldRuns(situation?: () => unknown) {
    const runs: ReturnType<typeof held<string>>[] = [];
    const ask = shareInFlight(() => {
      runs.push(held<string>());
      return runs.at(-1)!.promise;
    }, situation);
    return { runs, ask };
  }

  it.each(['resolve', 'reject'] as const)(
    'share its end, and later ones run anew: %s',
    async (end) => {
      const { runs, ask } = heldRuns();
      const answers = Promise.allSettled([ask(), ask()]);
      expect(runs).toHaveLength(1);
      runs[0]![end]('over' as never);
      expect(new Set((await answers).map(({ status }) => status)).size).toBe(1);
      void ask();
      expect(runs).toHaveLength(2);
    },
  );

  it('run anew in another situation, and that run does not end with the first', async () => {
    let accepting = true;
    const { runs, ask } = heldRuns(() => accepting);
    const before = ask();
    accepting = false;
    const after = ask();
    runs[0]!.resolve('well');
    expect(await before).toBe('well');
    void ask();
    expect(runs).toHaveLength(2);
    runs[1]!.resolve('draining');
    expect(await after).toBe('draining');
  });
});
