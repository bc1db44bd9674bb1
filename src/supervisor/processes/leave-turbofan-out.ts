import { setFlagsFromString } from 'node:v8';
import type { ResolvedClusterOptions } from '../../contract/options/index.js';

/** A user who sets one of these flags has decided. */
const COMPILER_FLAG = /--(no-?)?(always-)?(opt|turbofan|maglev|jitless)\b/;

/** V8 of Node 22, the first with Maglev, the compiler between the baseline and TurboFan. */
const FIRST_WITH_MAGLEV = 12;

/**
 * Leaves V8's last compiler, TurboFan, out of this process: it brings some 5 MB of its own code into
 * memory, and what Maglev makes of the primary's code is as good (a message: 6.1 → 6.9 µs; without
 * Maglev 23, so Node 20 is left as it is). Not where each connection passes through, nor where a
 * thread, which has the same flags, makes pages of metrics.
 */
export function leaveTurbofanOut(
  { balancing, admin }: Pick<ResolvedClusterOptions, 'balancing' | 'admin'>,
  {
    execArgv = process.execArgv,
    nodeOptions = process.env['NODE_OPTIONS'] ?? '',
    v8 = process.versions.v8,
    setFlags = setFlagsFromString,
  } = {},
): void {
  if (parseInt(v8) < FIRST_WITH_MAGLEV || balancing === 'round-robin' || admin !== undefined)
    return;
  if ([...execArgv, nodeOptions].some((text) => COMPILER_FLAG.test(text))) return;
  setFlags('--no-opt');
}
