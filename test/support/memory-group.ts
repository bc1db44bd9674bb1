import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { ControlGroup } from './control-group.js';

const ROOT_V2 = '/sys/fs/cgroup';
const ROOT_V1 = '/sys/fs/cgroup/memory';

/** A control group whose processes together may hold so much memory. */
export class MemoryGroup extends ControlGroup {
  /**
   * Makes one inside the group that this process is in, so that the limits of that hold too;
   * `undefined` where this machine does not let us.
   */
  static create(bytes: number): MemoryGroup | undefined {
    const [, inV1] = /^\d+:memory:(\/.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8')) ?? [];
    const parent = inV1 === undefined ? ROOT_V2 : `${ROOT_V1}${inV1.replace(/\/$/, '')}`;
    const path = `${parent}/nestjs-cluster-${randomUUID()}`;
    try {
      if (inV1 === undefined) writeFileSync(`${ROOT_V2}/cgroup.subtree_control`, '+memory');
      mkdirSync(path);
    } catch {
      return undefined; // mounted read-only, or not ours
    }
    writeFileSync(`${path}/memory.${inV1 === undefined ? 'max' : 'limit_in_bytes'}`, String(bytes));
    const swap = `${path}/memory.swap.max`;
    if (existsSync(swap)) writeFileSync(swap, '0');
    return new MemoryGroup(path);
  }
}
