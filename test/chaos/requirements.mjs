import { existsSync } from 'node:fs';

const FAKETIME = ['x86_64', 'aarch64']
  .map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketimeMT.so.1`)
  .find((path) => existsSync(path));

/** Requirements of some faults: whether the machine meets them, and if not, how to do so. */
const REQUIREMENTS = {
  root: { met: process.getuid() === 0, remedy: 'run as root' },
  faketime: { met: FAKETIME !== undefined, remedy: 'apt-get install faketime' },
};

/** The library that gives processes a clock of their own. */
export const clockLibrary = FAKETIME;

/** The unmet requirements of a fault, in words; undefined if all are met. */
export function whatIsMissing({ name, needs = [] }) {
  const missing = needs.filter((need) => !REQUIREMENTS[need].met);
  if (missing.length === 0) return undefined;
  const remedies = missing.map((need) => REQUIREMENTS[need].remedy).join(', ');
  return `the fault ${name} needs ${missing.join(', ')}: ${remedies}, or leave it out: --without ${name}`;
}
