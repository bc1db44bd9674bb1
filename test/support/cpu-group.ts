import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { ControlGroup } from './control-group.js';

const ROOT_V2 = '/sys/fs/cgroup';
const ROOT_V1 = '/sys/fs/cgroup/cpu';
const PERIOD_US = 100_000;

/** A control group whose processes together may use a share of the machine's cores. */
export class CpuGroup extends ControlGroup {
  /** Makes one, of cgroup v2 or v1; `undefined` where this machine does not let us. */
  static create(cpus: number): CpuGroup | undefined {
    const isV2 = existsSync(`${ROOT_V2}/cgroup.controllers`);
    if (!isV2 && !existsSync(`${ROOT_V1}/cpu.shares`)) return undefined;
    const quota = Math.round(cpus * PERIOD_US);
    const path = `${isV2 ? ROOT_V2 : ROOT_V1}/nestjs-cluster-${randomUUID()}`;
    try {
      if (isV2) writeFileSync(`${ROOT_V2}/cgroup.subtree_control`, '+cpu');
      mkdirSync(path);
    } catch {
      return undefined; // mounted read-only, or not ours
    }
    if (isV2) {
      writeFileSync(`${path}/cpu.max`, `${quota} ${PERIOD_US}`);
    } else {
      writeFileSync(`${path}/cpu.cfs_period_us`, String(PERIOD_US));
      writeFileSync(`${path}/cpu.cfs_quota_us`, String(quota));
    }
    return new CpuGroup(path);
  }
}
