import { expect, it } from 'vitest';
import { runHere } from '../../../../test/support/run-here.js';
import { runCommandLine } from '../../src/program.js';

const commandLine = (...args: string[]) => runHere(() => runCommandLine(args));

it.each([
  ['doctor --nope', "unknown option '--nope'"],
  ['doctor --workers 0', 'from 1 to 256'],
  ['tune -- node main.js', "required option '--url <path>'"],
  ['tune --url cats -- node', 'expected a path such as /cats'],
  ['tune --url /cats', "missing required argument 'command'"],
  ['tune --url / --seconds 0.5 -- node', 'from 1 to 3600'],
  ['tune --url / --header nonsense -- node', 'expected a header'],
  ['advise --seconds 61', 'from 1 to 60'],
  ['dashboard --port 65536', 'from 1 to 65535'],
  ['nginx --name a;b', 'expected at most 20 lowercase letters'],
  ['nothing', "unknown command 'nothing'"],
])('refuses wrong usage with exit code 64: %s', async (line, says) => {
  const { code, stdout, stderr } = await commandLine(...line.split(' '));

  expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
  expect(stderr).toContain(says);
});

it.each(['nginx', 'iptables'])('%s prints the ports of all workers', async (command) => {
  const { stdout } = await commandLine(command, '--port', '3000', '--workers', '3');

  const ports = stdout.matchAll(/(?:--to-ports |server 127\.0\.0\.1:)(\d+)/g);
  expect([...ports].map(([, port]) => Number(port))).toEqual([3_000, 3_001, 3_002]);
});
