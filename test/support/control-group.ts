import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { eventually } from './eventually.js';

const V2 = '/sys/fs/cgroup';
const V1_MEMORY = `${V2}/memory`;

/** A control group that a test has made. */
export class ControlGroup {
  private constructor(private readonly path: string) {}

  /**
   * A group with this limit on memory, in the group that this process is in, so that its limits hold
   * too; `undefined` if this machine does not allow that.
   */
  static ofMemory(bytes: number): ControlGroup | undefined {
    const [, inV1] = /^\d+:memory:(\/.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8')) ?? [];
    return inV1 === undefined
      ? ControlGroup.#create(V2, '+memory', {
          'memory.max': String(bytes),
          'memory.swap.max': '0',
        })
      : ControlGroup.#create(`${V1_MEMORY}${inV1.replace(/\/$/, '')}`, undefined, {
          'memory.limit_in_bytes': String(bytes),
        });
  }

  static #create(
    parent: string,
    controller: string | undefined,
    limits: Readonly<Record<string, string>>,
  ): ControlGroup | undefined {
    const path = `${parent}/nestjs-cluster-${randomUUID()}`;
    try {
      if (controller !== undefined) writeFileSync(`${V2}/cgroup.subtree_control`, controller);
      mkdirSync(path);
    } catch {
      return undefined; // mounted read-only, or not ours
    }
    for (const [name, limit] of Object.entries(limits)) {
      // A kernel without swap accounting lacks one of these files.
      if (existsSync(`${path}/${name}`)) writeFileSync(`${path}/${name}`, limit);
    }
    return new ControlGroup(path);
  }

  /** The command that runs another one in this group. */
  get within(): string[] {
    return ['sh', '-c', 'echo $$ > "$0" && exec "$@"', `${this.path}/cgroup.procs`];
  }

  /** Removes it; its last process may only just have ended. */
  async remove(): Promise<void> {
    await eventually(`${this.path} is removed`, () => {
      try {
        rmdirSync(this.path);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EBUSY') return false;
        throw error;
      }
      return true;
    });
  }
}
