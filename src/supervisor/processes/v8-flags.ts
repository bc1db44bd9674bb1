import { setFlagsFromString } from 'node:v8';
import type { ResolvedClusterOptions } from '../../contract/options/index.js';

/** A user who sets one of these flags has decided. */
const COMPILER_FLAG = /--(no-?)?(always-)?(opt|turbofan|maglev|jitless)\b/;
const SEMI_SPACE_FLAG = /--(min|max)[-_]semi[-_]space|--semi[-_]space/;

/** V8 of Node 22, the first with Maglev, the compiler between the baseline and TurboFan. */
const FIRST_WITH_MAGLEV = 12;

/** The facts about this process by which flags are chosen. */
function situation() {
  return {
    execArgv: process.execArgv,
    nodeOptions: process.env['NODE_OPTIONS'] ?? '',
    v8: process.versions.v8,
    setFlags: setFlagsFromString,
  };
}

/**
 * Leaves V8's last compiler, TurboFan, out of this process: its code takes 5 MB, and Maglev makes
 * the primary's code nearly as fast (a message: 6.1 → 6.9 µs; 23 without Maglev, so not on Node 20).
 * Not if each connection passes through the primary, nor if one of its threads makes pages of
 * metrics: threads have the same flags.
 */
export function leaveTurbofanOut(
  { balancing, admin }: Pick<ResolvedClusterOptions, 'balancing' | 'admin'>,
  { execArgv, nodeOptions, v8, setFlags } = situation(),
): void {
  if (parseInt(v8) < FIRST_WITH_MAGLEV || balancing === 'round-robin' || admin !== undefined)
    return;
  if ([...execArgv, nodeOptions].some((text) => COMPILER_FLAG.test(text))) return;
  setFlags('--no-opt');
}

/**
 * Keeps the young generation of V8's heap as small as it is at the start. In a
 * process that relays messages it would grow to 16 MB, and never shrink while
 * metrics are scraped. V8 reads this flag each time that it would grow.
 */
export function keepYoungGenerationSmall({ execArgv, nodeOptions, setFlags } = situation()): void {
  if ([...execArgv, nodeOptions].some((text) => SEMI_SPACE_FLAG.test(text))) return;
  setFlags('--semi-space-growth-factor=1');
}
