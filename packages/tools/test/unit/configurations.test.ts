import { InvalidArgumentError } from 'commander';
import { describe, expect, it } from 'vitest';
import { httpUrl, identifier, portNumber, workerCount } from '../../src/arguments.js';
import { iptablesScript } from '../../src/proxies/iptables.js';
import { nginxConfiguration } from '../../src/proxies/nginx.js';

const PORTS = [3_000, 3_001, 3_002];

it('nginx keeps 32 connections to each worker, and for less than the 5 s that Node does', () => {
  const lines = nginxConfiguration(PORTS, { listen: 80, name: 'shop' })
    .split('\n')
    .map((line) => line.trim());

  expect(lines).toEqual(
    expect.arrayContaining([
      ...PORTS.map((port) => `server 127.0.0.1:${port} max_fails=0;`),
      'keepalive 96;',
      'keepalive_timeout 4s;',
    ]),
  );
});

it('the script of iptables fills its chain in one step, and only then leads to it, once', () => {
  const text = iptablesScript(PORTS, { listen: 80, ipv6: false, name: 'shop' });
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
  'a URL': {
    parse: httpUrl,
    allowed: each('http://127.0.0.1:3000/health https://app/health /fib/30?x=1'),
    refused: ['', ...each('cats localhost:3000/health file:///etc/passwd xhttp://a/ http://')],
    read: (text) => (text.startsWith('/') ? `http://127.0.0.1:3000${text}` : text),
    message: 'expected a path such as /cats, or a URL',
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
