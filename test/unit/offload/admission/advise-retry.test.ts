import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { adviseRetry } from '../../../../src/offload/admission/advise-retry.js';

/** A response that keeps what it was told, as far as anything looks at it. */
class FakeResponse {
  readonly headers = new Map<string, string>();
  readonly heads: unknown[][] = [];

  constructor(readonly headersSent = false) {}

  get asNode(): ServerResponse {
    return this as unknown as ServerResponse;
  }

  hasHeader(name: string): boolean {
    return this.headers.has(name);
  }

  setHeader(name: string, value: string): void {
    this.headers.set(name, value);
  }

  writeHead(...args: unknown[]): this {
    this.heads.push(args);
    return this;
  }
}

describe('Retry-After', () => {
  it('is sent with a 503', () => {
    const response = new FakeResponse();
    adviseRetry(response.asNode, 7);
    expect(response.writeHead(503, 'Busy', { a: '1' })).toBe(response);
    expect([...response.headers]).toEqual([['Retry-After', '7']]);
    expect(response.heads).toEqual([[503, 'Busy', { a: '1' }]]);
  });

  it.each([200, 202, 429, 500, 504])(
    'is not sent with a %i, which the app has made of it',
    (status) => {
      const response = new FakeResponse();
      adviseRetry(response.asNode, 7);
      response.writeHead(status);
      expect([...response.headers]).toEqual([]);
      expect(response.heads).toEqual([[status]]);
    },
  );

  it('is left to the app where that has set one', () => {
    const response = new FakeResponse();
    adviseRetry(response.asNode, 7);
    response.setHeader('Retry-After', '60');
    response.writeHead(503);
    expect(response.headers.get('Retry-After')).toBe('60');
  });

  it('is not sent where the head of the response has left', () => {
    const response = new FakeResponse(true);
    adviseRetry(response.asNode, 7);
    response.writeHead(503);
    expect([...response.headers]).toEqual([]);
  });

  it('is the first advice where several calls of a request were refused', () => {
    const response = new FakeResponse();
    for (const seconds of [7, 9]) adviseRetry(response.asNode, seconds);
    response.writeHead(503);
    expect(response.headers.size).toBe(1);
    expect(response.heads).toHaveLength(1);
  });
});
