import type { IncomingHttpHeaders } from 'node:http';
import { describe, expect, it } from 'vitest';
import { refusalOf } from '../../../../src/observe/admin/guard-request.js';

interface Asked {
  readonly method?: string;
  readonly headers?: IncomingHttpHeaders;
  /** What is listened on. */
  readonly host?: string;
  readonly port?: number;
  readonly wantsToken?: boolean;
}

/** The status that a request is refused with. */
function status({
  method = 'GET',
  headers = { host: '127.0.0.1:9464' },
  host = '127.0.0.1',
  port = 9464,
  wantsToken = false,
}: Asked): number | undefined {
  return refusalOf({ method, headers }, host, port, wantsToken)?.status;
}

describe('a Host header', () => {
  it.each<[listening: string, port: number, asked: string]>([
    ['127.0.0.1', 9464, '127.0.0.1:9464'],
    ['127.0.0.1', 9464, 'localhost:9464'],
    ['127.0.0.1', 9464, 'LocalHost:9464'],
    ['127.0.0.1', 9464, '[::1]:9464'],
    ['::1', 9464, '[::1]:9464'],
    ['::1', 9464, 'localhost:9464'],
    ['::1', 9464, '127.0.0.1:9464'],
    ['localhost', 9464, 'localhost:9464'],
    ['127.0.0.2', 9464, '127.0.0.2:9464'],
    ['127.0.0.1', 80, '127.0.0.1:80'],
    ['127.0.0.1', 80, '127.0.0.1'],
    ['127.0.0.1', 80, 'LOCALHOST'],
    ['::1', 80, '[::1]'],
  ])('of who listens on %s, port %d, may be %s', (host, port, asked) => {
    expect(status({ headers: { host: asked }, host, port })).toBeUndefined();
  });

  it.each<[listening: string, port: number, asked: string | undefined]>([
    ['127.0.0.1', 9464, undefined],
    ['127.0.0.1', 9464, ''],
    ['127.0.0.1', 9464, 'evil.example:9464'],
    ['127.0.0.1', 9464, '127.0.0.1.evil.example:9464'],
    ['127.0.0.1', 9464, 'xlocalhost:9464'],
    ['127.0.0.1', 9464, '127.0.0.1'],
    ['127.0.0.1', 9464, '127.0.0.1:80'],
    ['127.0.0.1', 9464, '127.0.0.1:94640'],
    ['127.0.0.1', 9464, '127.0.0.1:9464, evil.example'],
    ['::1', 9464, '::1:9464'],
    ['127.0.0.1', 80, '127.0.0.1:8080'],
    ['127.0.0.1', 443, '127.0.0.1'],
  ])('of who listens on %s, port %d, is refused as %s', (host, port, asked) => {
    const headers = asked === undefined ? {} : { host: asked };
    expect(status({ headers, host, port })).toBe(421);
  });

  const BY_ADDRESS = ['10.2.3.4:9464', '10.2.3.4', '[fd00::1]:9464', '127.0.0.1:80'];
  const BY_LABEL = ['localhost:9464', 'my-app:9464', 'app'];
  const BY_DOMAIN = ['evil.example:9464', 'a.svc.cluster.local', '10.2.3.4.evil.example:9464'];
  const BROKEN = ['', ':9464', 'user@10.2.3.4:9464', '-a', '10.2.3.4:9464, evil.example', 'a b'];

  it.each(['0.0.0.0', '::', '10.2.3.4'])(
    'of who listens for others on %s may be an address or a name of one label, no domain',
    (host) => {
      const asked = (name: string) => status({ headers: { host: name }, host });
      expect([...BY_ADDRESS, ...BY_LABEL].map(asked)).toEqual(Array(7).fill(undefined));
      expect([...BY_DOMAIN, ...BROKEN].map(asked)).toEqual(Array(9).fill(421));
      expect(status({ headers: {}, host })).toBe(421);
    },
  );

  it.each(['0.0.0.0', '127.0.0.1'])(
    'of who listens on %s and wants a token may be any: a page of a browser has none',
    (host) => {
      const asked = (name: string) => status({ headers: { host: name }, host, wantsToken: true });
      expect([...BY_ADDRESS, ...BY_DOMAIN].map(asked)).toEqual(Array(7).fill(undefined));
      expect(status({ headers: {}, host, wantsToken: true })).toBe(421);
    },
  );

  it('is not repeated in the refusal', () => {
    const refusal = refusalOf(
      { method: 'GET', headers: { host: 'evil.example' } },
      '127.0.0.1',
      9464,
    );
    expect(refusal!.message).not.toContain('evil');
    expect(refusal!.message).not.toContain('9464');
  });
});

describe('an Origin', () => {
  const withOrigin = (origin: string, host = 'localhost:9464') =>
    status({ headers: { host, origin } });

  it.each([
    ['http://localhost:9464', 'localhost:9464'],
    ['http://127.0.0.1:9464', '127.0.0.1:9464'],
    ['http://localhost:9464', 'LOCALHOST:9464'],
  ])('%s may ask %s, which is itself', (origin, host) => {
    expect(withOrigin(origin, host)).toBeUndefined();
  });

  it.each([
    'http://evil.example:9464',
    'https://localhost:9464',
    'http://localhost:3000',
    'http://127.0.0.1:9464',
    'http://localhost:9464.evil.example',
    'null',
  ])('%s may not ask localhost:9464', (origin) => {
    expect(withOrigin(origin)).toBe(403);
  });
});

describe('Sec-Fetch-Site', () => {
  it.each([undefined, 'none', 'same-origin', 'same-site'])('may be %s', (site) => {
    const headers = { host: '127.0.0.1:9464', ...(site && { 'sec-fetch-site': site }) };
    expect(status({ headers })).toBeUndefined();
  });

  it('may not be cross-site', () => {
    const headers = { host: '127.0.0.1:9464', 'sec-fetch-site': 'cross-site' };
    expect(status({ headers })).toBe(403);
  });
});

describe('a method', () => {
  it.each(['GET', 'HEAD'])('may be %s', (method) => {
    expect(status({ method })).toBeUndefined();
  });

  it.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PURGE', 'get', ''])(
    'may not be %s',
    (method) => {
      expect(status({ method })).toBe(405);
    },
  );

  it('of a request for another server says nothing of what is here', () => {
    expect(status({ method: 'POST', headers: { host: 'evil.example' } })).toBe(421);
  });
});
