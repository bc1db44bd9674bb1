import { spawn } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { NODE } from '../support/cluster-process.js';
import { MAIN } from '../support/command-line.js';
import { plainEnvironment } from '../support/run-command.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { STATUS } from '../unit/support/cluster-status.js';

// test/unit/cli tests the output and the refusals of each argument.

/** The control socket of a cluster that aborts each reload, after a second. */
async function clusterThatAborts(): Promise<string> {
  const answers: Record<string, object> = {
    '/v1/status': STATUS,
    '/v1/reload': { outcome: 'aborted', generation: 1, reason: 'worker died' },
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

it.each([
  { args: ['reload'], code: 1 },
  { args: ['top'], code: 0 },
])('$args exits with $code if no one reads its output', async ({ args, code }) => {
  const child = spawn(NODE, [MAIN, ...args, '--cluster', await clusterThatAborts()], {
    env: plainEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.stdout.destroy();
  child.stderr.destroy();
  expect(await once(child, 'exit')).toEqual([code, null]);
});
