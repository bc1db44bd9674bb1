import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { cpuSeconds } from './cpu-time.mjs';
import { withDescendants } from './process-table.mjs';
import { hasProgram } from './systems/requirements.mjs';

/** Longest that a process may take for its end. */
const END_MS = 5_000;

/**
 * Machines of a small network, each with a cable to the first: network namespaces, which need root
 * and iproute2. Without these all are this machine.
 */
export class Machines {
  #names = [];
  #children = [];
  #end = () => this.#remove();

  /** Why they are this machine; undefined where they are not. */
  #lacks;

  constructor(count) {
    this.count = count;
    this.#lacks = lacks();
    if (this.#lacks !== undefined) return;
    process.once('exit', this.#end);
    try {
      this.#connect(`ncb-${randomBytes(3).toString('hex')}`);
    } catch (error) {
      this.#remove();
      this.#lacks = error.message.split('\n').find((line) => !line.startsWith('Command failed'));
    }
  }

  get lacks() {
    return this.#lacks;
  }

  /** The address by which `from` reaches `to`. */
  address(from, to) {
    if (this.#lacks !== undefined || from === to) return '127.0.0.1';
    return from === 0 ? `10.77.${to}.2` : `10.77.${from}.1`;
  }

  /** Starts a program on a machine. */
  start(machine, command, args, env = {}) {
    const stdout = process.env.BENCH_LOG ? 'inherit' : 'ignore';
    const child = this.#spawn(machine, command, args, env, stdout);
    this.#children.push(child);
    return child;
  }

  /** Runs a program on a machine and returns what it prints. */
  async output(machine, command, args) {
    const child = this.#spawn(machine, command, args, {}, 'pipe');
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (chunk) => (text += chunk));
    const code = await child.ended;
    if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}`);
    return text;
  }

  /** User and system time of all running processes, in seconds. */
  get cpuSeconds() {
    return cpuSeconds(withDescendants(this.#children.map(({ pid }) => pid)));
  }

  /** As a machine ends that loses its power: all at once. */
  kill(child) {
    for (const pid of withDescendants([child.pid])) kill(pid);
  }

  /** Ends all that run; the machines remain. */
  async stop() {
    for (const child of this.#children) child.kill('SIGTERM');
    for (const child of this.#children) {
      await Promise.race([child.ended, delay(END_MS, undefined, { ref: false })]);
      this.kill(child);
      await child.ended;
    }
    this.#children = [];
  }

  async close() {
    await this.stop();
    process.off('exit', this.#end);
    this.#remove();
  }

  #spawn(machine, command, args, env, stdout) {
    const [program, ...rest] = [...this.#into(machine), command, ...args];
    const child = spawn(program, rest, {
      stdio: ['ignore', stdout, 'inherit'],
      env: { PATH: `${process.env.PATH}:/usr/sbin:/sbin`, HOME: process.env.HOME, ...env },
    });
    child.ended = new Promise((resolve) => child.once('close', resolve));
    return child;
  }

  #into(machine) {
    return this.#lacks === undefined ? ['ip', 'netns', 'exec', this.#names[machine]] : [];
  }

  #connect(prefix) {
    for (let i = 0; i < this.count; i += 1) {
      const name = `${prefix}-${i}`;
      ip('netns', 'add', name);
      this.#names.push(name);
      ip('-n', name, 'link', 'set', 'lo', 'up');
      if (i === 0) continue;
      const cable = `cable${i}`;
      const [hub] = this.#names;
      ip('-n', hub, 'link', 'add', cable, 'type', 'veth', 'peer', cable, 'netns', name);
      for (const [end, host] of [
        [hub, 1],
        [name, 2],
      ]) {
        ip('-n', end, 'address', 'add', `10.77.${i}.${host}/30`, 'dev', cable);
        ip('-n', end, 'link', 'set', cable, 'up');
      }
    }
  }

  /** Also of a run that fails, or is interrupted. */
  #remove() {
    for (const child of this.#children) this.kill(child);
    for (const name of this.#names.splice(0)) {
      try {
        ip('netns', 'del', name);
      } catch (error) {
        console.error(error.message);
      }
    }
  }
}

function lacks() {
  if (!hasProgram('ip')) return 'ip is missing: apt-get install iproute2';
  return process.getuid() === 0 ? undefined : 'network namespaces need root';
}

function ip(...args) {
  execFileSync('ip', args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
  });
}

function kill(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it has ended
  }
}
