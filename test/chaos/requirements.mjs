import { existsSync } from 'node:fs';

const FAKETIME = ['x86_64', 'aarch64']
  .map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketimeMT.so.1`)
  .find((path) => existsSync(path));

/** What some faults need of the machine: whether it is there, and how to get it. */
const REQUIREMENTS = {
  root: { met: process.getuid() === 0, remedy: 'run as root' },
  faketime: { met: FAKETIME !== undefined, remedy: 'apt-get install faketime' },
};

/** The library that gives processes a clock of their own. */
export const clockLibrary = FAKETIME;

/** What a fault lacks, in words; undefined where it lacks nothing. */
export function whatIsMissing({ name, needs = [] }) {
  const missing = needs.filter((need) => !REQUIREMENTS[need].met);
  if (missing.length === 0) return undefined;
  const remedies = missing.map((need) => REQUIREMENTS[need].remedy).join(', ');
  return `the fault ${name} needs ${missing.join(', ')}: ${remedies}, or leave it out: --without ${name}`;
}
