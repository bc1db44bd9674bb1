import { InvalidArgumentError } from 'commander';
import { describe, expect, it } from 'vitest';
import {
  bodySize,
  hostName,
  httpUrl,
  identifier,
  listenAddress,
  portNumber,
  proxyAddress,
  workerCount,
} from '../../src/arguments.js';
import { iptablesScript } from '../../src/proxies/iptables.js';
import { nginxConfiguration } from '../../src/proxies/nginx.js';

const PORTS = [3_000, 3_001, 3_002];

const lines = (text: string) => text.split('\n').map((line) => line.trim());

describe('the configuration of nginx', () => {
  const configuration = (ports = PORTS, options: object = {}) =>
    nginxConfiguration(ports, {
      host: '127.0.0.1',
      listen: '80',
      name: 'shop',
      maxBodySize: '1m',
      trustedProxy: [],
      ...options,
    });

  it('keeps 32 connections to each worker, and for less than the 5 s that Node does', () => {
    expect(lines(configuration())).toEqual(
      expect.arrayContaining(['keepalive 96;', 'keepalive_timeout 4s;']),
    );
    expect(lines(configuration([3_000]))).toContain('keepalive 32;');
  });

  it.each([
    ['10.0.0.7', '10.0.0.7:3000'],
    ['::1', '[::1]:3000'],
    ['app.internal', 'app.internal:3000'],
  ])('reaches the workers at %s as %s', (host, address) => {
    expect(configuration(PORTS, { host })).toContain(`  server ${address} max_fails=0;\n`);
  });

  it.each(['3000', '3002', '127.0.0.1:3001', '[::]:3001'])(
    'is refused where nginx would listen on %s, which a worker does',
    (listen) => {
      expect(() => configuration(PORTS, { listen })).toThrow(
        /a worker does \(3000 to 3002\); give another --listen/,
      );
    },
  );
});

describe('the script of iptables', () => {
  const script = (ports = PORTS, options: object = {}) =>
    iptablesScript(ports, { listen: 80, ipv6: false, name: 'shop', ...options });

  it('fills its chain in one step, and only then leads to it, once', () => {
    const text = script();
    const order = [
      'set -e',
      "iptables-restore --wait --noflush <<'RULES'",
      ':SHOP - [0:0]',
      'COMMIT',
      '-C "$hook" -p tcp -m addrtype --dst-type LOCAL -j SHOP',
      '-A "$hook" -p tcp -m addrtype --dst-type LOCAL -j SHOP',
    ].map((part) => text.indexOf(part));
    expect(order.every((place) => place >= 0)).toBe(true);
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect(text).toContain('for hook in PREROUTING OUTPUT; do');
  });
});

/** Texts that would end a word in a shell, in nginx's configuration or in a ruleset. */
const HOSTILE = [
  '$(reboot)',
  '`reboot`',
  'a b',
  'a;b',
  'a\nb',
  'a\n',
  '\na',
  'a{',
  'a}',
  "a'",
].concat(['a"', 'a|b', 'a&b', 'a\\b', 'a/b', '$a', '#a', '-a', '']);

/** Splits at spaces, because no such text may have one. */
const each = (texts: string): string[] => texts.split(' ');

interface Argument {
  readonly parse: (text: string) => unknown;
  readonly allowed: readonly string[];
  readonly refused: readonly string[];
  /** Turns the text into the expected result. Default: the text itself. */
  readonly read?: (text: string) => unknown;
  readonly message?: string;
}

const ARGUMENTS: Readonly<Record<string, Argument>> = {
  'a port': {
    parse: portNumber,
    allowed: each('1 80 65535 00080'),
    refused: ['', ' ', ' 80', '80 ', ...each('0 65536 -1 +1 1.5 0x50 1e3 ٨٠ 80; 99999999')],
    read: Number,
    message: 'expected a port from 1 to 65535.',
  },
  'a number of workers': {
    parse: workerCount,
    allowed: each('1 256'),
    refused: each('0 257 auto 2.5'),
    read: Number,
    message: 'expected a whole number from 1 to 256.',
  },
  'a name': {
    parse: identifier,
    allowed: ['a', 'nestjs_cluster', 'shop2', `a${'x'.repeat(19)}`],
    refused: [...HOSTILE, ...each('A 2a _a a-b é'), `a${'x'.repeat(20)}`],
  },
  'a host': {
    parse: hostName,
    allowed: each('localhost 127.0.0.1 ::1 fe80::1 a APP-1.internal 2001:db8::1'),
    refused: [...HOSTILE, ...each('1:2 a:80 [::1] a- .a a. a_b')],
    message: 'expected a host name or an address.',
  },
  'a proxy that is trusted': {
    parse: (text) => proxyAddress(text, ['10.1.1.1']),
    allowed: each('10.0.0.1 10.0.0.0/8 ::1 fd00::/8'),
    refused: [...HOSTILE, ...each('10.0.0.0/33 ::/129 10.0.0.0/ /8 app 1.2.3 10.0.0.1/-1')],
    read: (text) => ['10.1.1.1', text],
  },
  'the largest body': {
    parse: bodySize,
    allowed: each('1m 512k 20M 1g 65536'),
    refused: [...HOSTILE, ...each('0 0m 1t 1.5m -1 1mb 999999999999m')],
  },
  'an address to listen on': {
    parse: listenAddress,
    allowed: each('80 127.0.0.1:8080 [::]:80 [::1]:65535 0.0.0.0:1'),
    refused: [
      ...HOSTILE,
      '80 default_server',
      '80\n',
      ...each('80; 127.0.0.1 127.0.0.1:0 65536 127.0.0.1:65536 ::1:80 [1:2]:80 [::1]'),
      ...each('localhost:80 .:80 :80 ...:80 999.1.1.1:80 1.2.3:80'),
    ],
  },
  'a URL': {
    parse: httpUrl,
    allowed: each('http://127.0.0.1:3000/health https://app/health http://[::1]:3000/'),
    refused: [
      '',
      ...each('127.0.0.1:3000/health localhost:3000/health file:///etc/passwd ftp://a/ xhttp://a/'),
      ...each("httpx://a/ http:// http://a;b/health http://a'/health http://a{b}/health"),
      ...each('http://$a/health http://a_b/health'),
    ],
    message: 'expected a URL such as http://127.0.0.1:3000/health.',
  },
};

describe.each(Object.entries(ARGUMENTS))('%s', (_, { parse, allowed, refused, read, message }) => {
  it.each(allowed)('may be %j', (text) => {
    expect(parse(text)).toEqual(read?.(text) ?? text);
  });

  it.each(refused)('is refused as %j', (text) => {
    expect(() => parse(text)).toThrow(InvalidArgumentError);
    expect(() => parse(text)).toThrow(message ?? 'expected');
  });
});
