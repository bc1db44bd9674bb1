import { spawn } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, NODE, stopAll } from '../support/cluster-process.js';
import { commandLine, MAIN, printed } from '../support/command-line.js';
import { eventually } from '../support/eventually.js';
import { freePorts } from '../support/free-ports.js';
import { request } from '../support/http-client.js';
import { COMMANDS, portsIn } from '../support/proxy-ports.js';
import { plainEnvironment, runCommand } from '../support/run-command.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { STATUS } from '../unit/support/fake-control-client.js';

// unit/tools/cli/command-line.test.ts tests the output and the refusals of each argument.

/** Runs a command that must fail: with an empty stdout, and an error of one line on stderr. */
async function refusal(code: number, ...args: string[]): Promise<string> {
  const result = await commandLine(...args);
  expect(result).toMatchObject({ code, stdout: '' });
  expect(result.stderr).toMatch(/^error: /);
  // oxlint-disable-next-line no-control-regex -- what a terminal would obey
  expect(result.stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
  return result.stderr;
}

/** The control socket of a cluster that aborts each reload, after a second. */
async function clusterThatAborts(): Promise<string> {
  const answers: Record<string, object> = {
    '/v1/status': STATUS,
    '/v1/reload': { outcome: 'aborted', generation: 1, reason: 'worker died' },
    '/v1/workers/0/restart': { outcome: 'completed', slot: 0, reason: null },
  };
  const server = http.createServer((request, response) => {
    const { url = '' } = request;
    const answer = (): void => void response.end(JSON.stringify(answers[url]));
    request.resume().once('end', () => {
      // A command prints the state of the workers while it waits.
      if (url === '/v1/status') answer();
      else setTimeout(answer, 1_500);
    });
  });
  const path = join(temporaryDirectory(), 'control.sock');
  await once(server.listen(path), 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return path;
}

describe('nestjs-cluster', () => {
  it.each(COMMANDS)('prints what is asked for: %s', async (command) => {
    const text = await printed(command, '--port', '3000', '--workers', '3');

    expect(portsIn(command, text)).toEqual([3000, 3001, 3002]);
  });

  it.each([
    { code: 64, args: ['nginx', '--port', '\u009b31m', '--workers', '2'] },
    { code: 69, args: ['iptables', '--url', 'http://127.0.0.1:9/\u001b[2J'] },
    { code: 78, args: ['iptables', '--port', '65530', '--workers', '7'] },
  ])('ends with $code where it refuses $args', async ({ code, args }) => {
    await refusal(code, ...args);
  });

  it('says nothing to a reader that leaves early', async () => {
    const child = spawn(NODE, [MAIN, 'nginx', '--port', '3000', '--workers', '256'], {
      env: plainEnvironment(),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk));

    child.stdout.destroy();

    await once(child, 'close');
    expect(stderr).toBe('');
  });

  it.each([
    { args: ['reload'], code: 1 },
    { args: ['reload', '--json'], code: 1 },
    { args: ['restart', '0'], code: 0 },
    { args: ['top'], code: 0 },
  ])('ends $args with $code where nobody reads what it says', async ({ args, code }) => {
    const child = spawn(NODE, [MAIN, ...args, '--cluster', await clusterThatAborts()], {
      env: plainEnvironment(),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stdout.destroy();
    child.stderr.destroy();
    expect(await once(child, 'exit')).toEqual([code, null]);
  });

  it('waits for the outcome of a change also where its output has no room', async () => {
    const run = async (...args: string[]) => {
      const command = [NODE, MAIN, ...args, '--cluster', await clusterThatAborts()].join(' ');
      return runCommand('sh', ['-c', `exec ${command} > /dev/full`], {
        cwd: '/',
        env: plainEnvironment(),
      });
    };
    const refused = /^error: cannot write the output: ENOSPC.*\n/;
    const reload = await run('reload');
    expect(reload).toMatchObject({ code: 1, stderr: expect.stringMatching(refused) });
    expect(reload.stderr).toContain('error: reload gen=1 aborted');
    for (const args of [
      ['restart', '0'],
      ['restart', '0', '--json'],
    ]) {
      expect(await run(...args)).toMatchObject({ code: 1, stderr: expect.stringMatching(refused) });
    }
  });
});

describe('a cluster that runs', () => {
  let cluster: ClusterProcess;
  let port: number;

  beforeAll(async () => {
    port = await freePorts(3);
    cluster = await ClusterProcess.start({
      program: 'sample',
      options: { balancing: 'ports', workers: 3, port },
    });
  });

  afterAll(stopAll);

  const portsNow = async (command: (typeof COMMANDS)[number]) =>
    portsIn(command, await printed(command, '--url', `${cluster.url}/health`));

  it.each(COMMANDS)('tells %s the port of each worker', async (command) => {
    expect(await portsNow(command)).toEqual([port, port + 1, port + 2]);
  });

  it('has to be asked at its health endpoint', async () => {
    const error = await refusal(69, 'nginx', '--url', cluster.url);

    expect(error).toContain('health endpoint');
  });

  it('tells the ports of the workers that there should be, when it has been scaled down', async () => {
    cluster.kill('SIGTTOU');
    await cluster.event('worker-stopped', ({ worker }) => worker === 2);

    for (const command of COMMANDS) {
      await eventually(
        `two ports of ${command}`,
        () => portsNow(command),
        (ports) => ports.join() === [port, port + 1].join(),
      );
    }
  });
});

describe('a cluster that is not ready', () => {
  afterAll(stopAll);

  it('tells its ports all the same', async () => {
    const port = await freePorts(2);
    const cluster = new ClusterProcess({
      options: { balancing: 'ports', workers: 2, port },
      env: {
        ...behaviour('never-ready'),
        TEST_SLOTS: '1',
        TEST_MODULE_OPTIONS: JSON.stringify({ health: { minReady: 'all' } }),
      },
    });
    await cluster.event('listening');
    expect((await request(cluster.url, '/health')).status).toBe(503);

    for (const command of COMMANDS) {
      const text = await printed(command, '--url', `${cluster.url}/health`);
      expect(portsIn(command, text)).toEqual([port, port + 1]);
    }
  });
});

describe('an answer that does not end', () => {
  it('is not waited for without end', async () => {
    const server = http.createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).write('{"details":');
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => {
      server.close();
      server.closeAllConnections();
    });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/health`;

    expect(await refusal(69, 'nginx', '--url', url)).toContain(url);
  });
});
