import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import { ProcessGroup } from '../process-group.mjs';
import { serving } from './answers.mjs';
import { livePids, startOnPorts, workerPorts } from './plain-app.mjs';
import { hasProgram } from './requirements.mjs';

const PROGRAMS = { ip: 'iproute2', iptables: 'iptables', unshare: 'util-linux' };

/** Why rules of iptables cannot be tried here; undefined where they can. */
async function lacksIptables() {
  const missing = Object.keys(PROGRAMS).filter((name) => !hasProgram(name));
  if (missing.length > 0) {
    const packages = missing.map((name) => PROGRAMS[name]).join(' ');
    return `${missing.join(', ')} ${missing.length > 1 ? 'are' : 'is'} missing: apt-get install ${packages}`;
  }
  // A namespace that is gone with the command.
  const rule =
    'iptables -t nat -A OUTPUT -p tcp -m statistic --mode nth --every 2 --packet 0 -j REDIRECT --to-ports 1';
  try {
    await promisify(execFile)('unshare', ['--net', 'sh', '-c', rule], {
      env: { PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
    });
    return undefined;
  } catch (error) {
    const reason = (error.stderr || error.message).trim().split('\n')[0];
    return `iptables needs root and a network namespace of its own: run it as root (${reason})`;
  }
}

/**
 * Makes a network namespace that goes with the group.
 *
 * @returns the command that leads into it, to be put in front of another.
 */
async function makeNetworkNamespace(group) {
  const name = `nestjs-cluster-bench-${randomBytes(4).toString('hex')}`;
  group.onStopped(async () => {
    if (existsSync(`/run/netns/${name}`)) await promisify(execFile)('ip', ['netns', 'del', name]);
  });
  await group.run('ip', ['netns', 'add', name]);
  await group.run('ip', ['-n', name, 'link', 'set', 'lo', 'up']);
  return ['ip', 'netns', 'exec', name];
}

/** Runs a shell script inside of it. */
function runScript(group, enter, script) {
  const [command, ...args] = [...enter, 'sh', '-c', script];
  return group.run(command, args);
}

/** @type {System} */
export const iptables = {
  name: 'iptables',
  label: ({ workers }) => `iptables, ${workers} ports`,
  abilities: [],
  missing: lacksIptables,
  start({ workers, port, ...options }) {
    return ProcessGroup.begin(async (group) => {
      const enter = await makeNetworkNamespace(group);
      await runScript(group, enter, rules(workerPorts({ workers, port }), port));
      const started = await startOnPorts(group, { ...options, workers, port, enter });
      return serving(group, port, {
        enter,
        workerPids: () => livePids(started),
      });
    });
  },
};

/** Each rule takes one in n of the connections that reach it, where n workers are left. */
function rules(ports, listen) {
  return ports
    .map((port, k) => {
      const left = ports.length - k;
      const share = left > 1 ? `-m statistic --mode nth --every ${left} --packet 0 ` : '';
      return `iptables -t nat -A OUTPUT -p tcp -d 127.0.0.1 --dport ${listen} ${share}-j REDIRECT --to-ports ${port}`;
    })
    .join(' && ');
}
