import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { NODE } from './cluster-process.js';
import { runCommand } from './run-command.js';
import { SYSTEM_ENVIRONMENT } from './system-packages.js';

const root = join(import.meta.dirname, '../..');
const client = join(root, 'test/fixtures/ask-slots.mjs');

/** A network of its own: its ports, its addresses and its packet filter concern nobody else. */
export class NetworkNamespace {
  private constructor(private readonly name: string) {}

  /** One with nothing but a loopback interface, by IPv4 and IPv6. */
  static async create(): Promise<NetworkNamespace> {
    const namespace = new NetworkNamespace(`nestjs-cluster-${randomUUID().slice(0, 8)}`);
    await succeed('ip', ['netns', 'add', namespace.name]);
    try {
      await namespace.ip('link', 'set', 'lo', 'up');
    } catch (error) {
      await namespace.remove();
      throw error;
    }
    return namespace;
  }

  /** The command that runs another one in here. */
  get within(): string[] {
    return ['ip', 'netns', 'exec', this.name];
  }

  /** The output of a program that runs in this namespace. Throws if the program fails. */
  output(command: string, args: readonly string[] = [], input = ''): Promise<string> {
    const [ip, ...within] = this.within;
    return succeed(ip!, [...within, command, ...args], input);
  }

  /** Links this namespace (`address`) and another (`theirs`). Both addresses have prefix lengths. */
  async connectTo(other: NetworkNamespace, address: string, theirs: string): Promise<void> {
    await this.ip('link', 'add', 'cable', 'type', 'veth', 'peer', 'cable', 'netns', other.name);
    await this.#plugIn(address);
    await other.#plugIn(theirs);
  }

  /** The slots of the workers that answer `times` new connections from this namespace, in order. */
  async slotsAt(url: string, times: number): Promise<readonly number[]> {
    return JSON.parse(await this.output(NODE, [client, url, String(times)])) as number[];
  }

  /** Removes it, with all that was set up in it. */
  async remove(): Promise<void> {
    await succeed('ip', ['netns', 'delete', this.name]);
  }

  async #plugIn(address: string): Promise<void> {
    await this.ip('address', 'add', address, 'dev', 'cable');
    await this.ip('link', 'set', 'cable', 'up');
  }

  /** Configures it. */
  private ip(...args: string[]): Promise<string> {
    return succeed('ip', ['-netns', this.name, ...args]);
  }
}

async function succeed(command: string, args: readonly string[], input = ''): Promise<string> {
  const options = { cwd: root, env: SYSTEM_ENVIRONMENT, input };
  const { code, stdout, stderr } = await runCommand(command, args, options);
  if (code === 0) return stdout;
  throw new Error(`${command} ${args.join(' ')} ended with ${code}\n${stderr}${input}`);
}
