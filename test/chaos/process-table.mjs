import { readdirSync, readFileSync } from 'node:fs';
import { hasVariable, readProcesses } from '../bench/process-table.mjs';

export { signal } from '../bench/process-table.mjs';

/** Pids of the live processes that a process has started. */
export function liveChildrenOf(pid) {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
    return children
      .split(' ')
      .map(Number)
      .filter((child) => child > 0 && isAlive(child));
  } catch {
    return []; // the process has ended
  }
}

/** A zombie has ended: only its parent has not looked yet. */
function isAlive(pid) {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** Live processes that were started with this variable, `NAME=value`. */
export function marked(variable) {
  return [...readProcesses().keys()].filter((pid) => hasVariable(pid, variable));
}

/** Numbers of the descriptors that a process has open. */
export function descriptorsOf(pid) {
  return readdirSync(`/proc/${pid}/fd`).map(Number);
}

export function residentBytesOf(pid) {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(kilobytes) * 1_024;
}
