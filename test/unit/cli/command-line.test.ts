import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { freePorts } from '../../../support/free-ports.js';
import { COMMANDS, portsIn } from '../../../support/proxy-ports.js';
import { commandLine, printed } from '../../support/command-line-here.js';

/** Runs a command that must fail: with an empty stdout, and an error of one line on stderr. */
async function refusal(code: number, ...args: string[]): Promise<string> {
  const result = await commandLine(...args);
  expect(result).toMatchObject({ code, stdout: '' });
  expect(result.stderr).toMatch(/^error: /);
  // oxlint-disable-next-line no-control-regex -- what a terminal would obey
  expect(result.stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
  return result.stderr;
}

/** Starts a server that is not a cluster and answers everything with `body`. Gives its URL. */
async function answering(body: string): Promise<string> {
  const server = http.createServer((_request, response) => {
    response.end(body);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/health`;
}

const health = (cluster: object) => JSON.stringify({ details: { cluster } });
const GOOD = { balancing: 'ports', desired: 2, ports: [3000, 3001] };

describe.each(COMMANDS)('%s', (command) => {
  const portsOf = async (...args: string[]) => portsIn(command, await printed(command, ...args));

  it('prints the ports of a cluster that is described', async () => {
    expect(await portsOf('--port', '3000', '--workers', '3')).toEqual([3000, 3001, 3002]);
    expect(await portsOf('--port', '65535', '--workers', '1')).toEqual([65_535]);
    expect(await portsOf('--port', '3000', '--workers', '256')).toHaveLength(256);
  });

  it('listens on port 80, or on the one it is told', async () => {
    const described = [command, '--port', '3000', '--workers', '2'];

    expect(await printed(...described)).toMatch(/(?:listen|dport) 80\b/);
    const told = await printed(...described, '--listen', '8080');
    expect(told).toMatch(/(?:listen|dport) 8080\b/);
    expect(told).not.toMatch(/\b80\b/);
  });

  it('explains itself', async () => {
    const help = await printed(command, '--help');

    expect(help).toContain(`Usage: nestjs-cluster ${command}`);
    expect(help).toContain('changes nothing');
    for (const option of ['--url', '--port', '--workers', '--listen', '--name', '--help']) {
      expect(help).toContain(option);
    }
    expect(help).toContain('http://127.0.0.1:3000/health');
  });

  it.each([['--port', '3000'], ['--nope'], ['more']])(
    'refuses %s as wrong usage',
    async (...args) => {
      expect(await refusal(64, command, ...args)).toMatch(/--help|--workers/);
    },
  );

  it('refuses ports that there are none of', async () => {
    const error = await refusal(78, command, '--port', '65530', '--workers', '7');

    expect(error).toContain('7 workers from port 65530 on go beyond port 65535');
    expect(error).toContain('lower one of them');
  });

  it('says what to do where nothing answers', async () => {
    const url = `http://127.0.0.1:${await freePorts(1)}/health`;

    const error = await refusal(69, command, '--url', url);

    expect(error).toContain(url);
    expect(error).toContain('ECONNREFUSED');
    expect(error).toContain('--port and --workers');
  });
});

/** All commands read them in the same way. */
describe('the options', () => {
  const misuses = [
    { args: ['--port', '3000'], says: '--workers' },
    { args: ['--workers', '2'], says: '--port' },
    { args: ['--port', '3000', '--workers', '2', '--url', 'http://127.0.0.1'], says: '--url' },
    { args: ['--port', '0', '--workers', '2'], says: 'from 1 to 65535' },
    { args: ['--port', '3000.5', '--workers', '2'], says: 'from 1 to 65535' },
    { args: ['--port', '', '--workers', '2'], says: 'from 1 to 65535' },
    { args: ['--port', '3000;reboot', '--workers', '2'], says: 'from 1 to 65535' },
    { args: ['--port', '3000', '--workers', '257'], says: 'from 1 to 256' },
    { args: ['--port', '3000', '--workers', 'auto'], says: 'from 1 to 256' },
    { args: ['--port', '3000', '--workers', '2', '--listen', 'http'], says: 'expected a port' },
    { args: ['--port', '0x50', '--workers', '2'], says: 'from 1 to 65535' },
    { args: ['--port', '3000', '--workers', '1e1'], says: 'from 1 to 256' },
    { args: ['--url', '127.0.0.1:3000/health'], says: 'http://127.0.0.1:3000/health' },
    { args: ['--url', 'file:///etc/passwd'], says: 'http://127.0.0.1:3000/health' },
    { args: ['--name', 'a;b', '--port', '3000', '--workers', '2'], says: 'letters' },
    {
      args: ['--name', `a${'b'.repeat(20)}`, '--port', '3000', '--workers', '2'],
      says: 'at most 20',
    },
    { args: ['--nope'], says: '--help' },
    { args: ['--port', '3000', '--workers', '2', 'more'], says: '--help' },
  ].map((misuse) => ({ ...misuse, line: misuse.args.join(' ') }));

  it.each(misuses)('refuses $line', async ({ args, says }) => {
    expect(await refusal(64, 'iptables', ...args)).toContain(says);
  });
});

describe('nginx', () => {
  const described = ['nginx', '--port', '3000', '--workers', '2'];

  it.each(['8080', '127.0.0.1:8080', '[::]:80', '[fd00::1]:65535'])(
    'can listen on %s',
    async (address) => {
      expect(await printed(...described, '--listen', address)).toContain(`  listen ${address};\n`);
    },
  );

  it.each(['0', '65536', '127.0.0.1', '127.0.0.1:0', '[::]', '[:::]:80', '[1:2]:80', '80;', ''])(
    'refuses to listen on %j',
    async (address) => {
      expect(await refusal(64, ...described, `--listen=${address}`)).toContain('expected a port');
    },
  );

  it.each(['3001', '127.0.0.1:3000'])(
    'refuses to listen on %s, where a worker does',
    async (at) => {
      const error = await refusal(78, ...described, '--listen', at);

      expect(error).toContain('a worker does (3000 to 3001)');
      expect(error).toContain('--listen');
    },
  );

  it('has no name twice where there are two clusters', async () => {
    const names = async (...args: string[]) =>
      [...(await printed(...described, ...args)).matchAll(/upstream \w+|map \S+ \S+/g)].flat();

    const first = await names();
    const second = await names('--name', 'second');
    expect([first.length, second.length]).toEqual([2, 2]);
    expect(first.filter((name) => second.includes(name))).toEqual([]);
  });
});

describe('nginx --host', () => {
  const described = ['nginx', '--port', '3000', '--workers', '2'];

  it('is where the workers are', async () => {
    const servers = async (...args: string[]) =>
      [...(await printed(...described, ...args)).matchAll(/^ +server (\S+)/gm)].map(([, at]) => at);

    expect(await servers()).toEqual(['127.0.0.1:3000', '127.0.0.1:3001']);
    expect(await servers('--host', '10.0.0.5')).toEqual(['10.0.0.5:3000', '10.0.0.5:3001']);
    expect(await servers('--host', '::1')).toEqual(['[::1]:3000', '[::1]:3001']);
    expect(await servers('--host', 'app.internal')).toEqual([
      'app.internal:3000',
      'app.internal:3001',
    ]);
  });

  it('is warned of where the workers answer others than this machine as well', async () => {
    const { port } = new URL(await answering(health(GOOD)));
    const open = await answering(health({ ...GOOD, desired: 1, ports: [Number(port)] }));
    // This machine's network, as far as the command knows.
    vi.spyOn(os, 'networkInterfaces').mockReturnValue({
      eth0: [{ internal: false, address: '127.0.0.1' } as os.NetworkInterfaceInfo],
    });
    syncBuiltinESMExports();
    onTestFinished(() => {
      vi.restoreAllMocks();
      syncBuiltinESMExports();
    });

    const { code, stdout, stderr } = await commandLine('nginx', '--url', open);
    expect(code).toBe(0);
    expect(stdout).toContain(`server 127.0.0.1:${port} `);
    expect(stderr).toContain(`warning: the workers answer at 127.0.0.1:${port} as well`);
    expect(stderr).toContain("host: '127.0.0.1'");
    // There nothing is reached but by the proxy.
    const elsewhere = await commandLine('nginx', '--url', open, '--host', '10.0.0.5');
    expect(elsewhere.stderr).toBe('');
  });

  it('is that of --url, where the cluster is asked', async () => {
    const url = await answering(health(GOOD));

    const there = await printed('nginx', '--url', url.replace('127.0.0.1', 'localhost'));
    expect(there).toContain('server localhost:3000 ');
    expect(await printed('nginx', '--url', url, '--host', '10.0.0.5')).toContain(
      'server 10.0.0.5:3000 ',
    );
  });

  it.each(['1:2', '-', '', 'a b', '127.0.0.1;', '$host', '{', '127.0.0.1\nserver 1.2.3.4'])(
    'refuses %j',
    async (host) => {
      // The message shows what was typed: also a line break.
      const { code, stdout, stderr } = await commandLine(...described, `--host=${host}`);

      expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
      expect(stderr).toContain('expected a host name or an address');
    },
  );
});

describe('nestjs-cluster', () => {
  it('lists its commands', async () => {
    const help = await printed('--help');

    expect(help).toContain('Usage: nestjs-cluster');
    for (const command of COMMANDS) expect(help).toMatch(new RegExp(`^ +${command}\\b`, 'm'));
  });

  it('knows its version', async () => {
    const { version } = JSON.parse(
      readFileSync(join(import.meta.dirname, '../../../../package.json'), 'utf8'),
    ) as { version: string };

    expect(await printed('--version')).toBe(`${version}\n`);
  });

  it('shows them to those who name none, as an error', async () => {
    const { code, stdout, stderr } = await commandLine();

    expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
    expect(stderr).toBe(await printed('--help'));
  });

  it.each(['haproxy', '--nope'])('refuses %s as wrong usage', async (argument) => {
    const error = await refusal(64, argument);

    expect(error).toContain(`'${argument}'`);
    expect(error).toContain('--help');
  });

  it.each([
    { code: 64, args: ['\u001b[2J'] },
    { code: 64, args: ['nginx', '--\u001b]0;owned\u0007'] },
    { code: 64, args: ['nginx', '--port', '\u009b31m', '--workers', '2'] },
    { code: 69, args: ['nginx', '--url', 'http://127.0.0.1:9/\u001b[2J'] },
  ])('quotes $args without what a terminal would obey', async ({ code, args }) => {
    await refusal(code, ...args);
  });
});

describe('an answer of something else', () => {
  it('is used where it is that of a cluster, and its numbers alone get into a script', async () => {
    const url = await answering(health({ ...GOOD, name: '$(reboot)', host: '$(reboot)' }));

    for (const command of COMMANDS) {
      const script = await printed(command, '--url', url);
      expect(portsIn(command, script)).toEqual(GOOD.ports);
      expect(script).not.toContain('reboot');
    }
  });

  // Each answer that is refused has its row in unit/cli-worker-ports.test.ts.
  it('is refused in one line without what a terminal would obey', async () => {
    const ESCAPES = '\u001b]0;owned\u0007\u001b[2J\u009b31m\r\n\u0000';
    for (const body of [health({ ...GOOD, balancing: ESCAPES }), ESCAPES]) {
      // The one whose output a root shell runs. All of them ask in the same way.
      const error = await refusal(69, 'iptables', '--url', await answering(body));

      expect(error.trim()).not.toContain('\n');
      expect(error).toContain('health endpoint');
    }
  });

  it('is refused where it is one process without workers', async () => {
    const url = await answering(health({ ...GOOD, balancing: 'none', desired: 1, ports: [] }));

    const error = await refusal(78, 'nginx', '--url', url);

    expect(error).toContain('one process');
    expect(error).toContain('CLUSTER_BALANCING=ports');
  });
});
