import { InvalidArgumentError } from 'commander';
import { expect, it } from 'vitest';
import { httpUrl, identifier, portNumber, workerCount } from '../../src/arguments.js';
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

it.each<[string, (text: string) => unknown, allowed: string[], refused: string[]]>([
  ['a port', portNumber, ['1', '65535'], ['', ' 80', '0', '65536', '-1', '1.5', '0x50', '80;']],
  ['a number of workers', workerCount, ['1', '256'], ['0', '257', 'auto']],
  [
    'a name',
    identifier,
    ['nestjs_cluster', `a${'x'.repeat(19)}`],
    [...HOSTILE, 'A', '2a', 'é', `a${'x'.repeat(20)}`],
  ],
  ['a URL', httpUrl, ['https://app/health'], ['', 'cats', 'file:///etc/passwd', 'xhttp://a/']],
])('%s on the command line is parsed or refused', (_, parse, allowed, refused) => {
  expect(allowed.map((text) => String(parse(text)))).toEqual(allowed);
  for (const text of refused) expect(() => parse(text), text).toThrow(InvalidArgumentError);
});

it('a path alone is a URL of the app at the default address', () => {
  expect(httpUrl('/fib/30?x=1')).toBe('http://127.0.0.1:3000/fib/30?x=1');
});
