import { setFlagsFromString } from 'node:v8';
import type { ResolvedClusterOptions } from '../options/index.js';

/** Who sets one of these has decided. */
const COMPILER_FLAG = /--(no-?)?(always-)?(opt|turbofan|maglev|jitless)\b/;

const FLAGS = ['--no-opt', '--no-maglev'];

/**
 * Leaves this process's JavaScript to V8's interpreter and its baseline compiler. The optimising
 * ones bring some 10 MB of their own code into memory, and gain a process nothing that relays a few
 * messages a second: parsing, writing and forking are native. Not where each connection passes
 * through, nor where a thread, which has the same flags, makes pages of metrics.
 */
export function keepCodePlain(
  { balancing, admin }: Pick<ResolvedClusterOptions, 'balancing' | 'admin'>,
  execArgv: readonly string[] = process.execArgv,
  nodeOptions: string = process.env['NODE_OPTIONS'] ?? '',
  setFlags: (flags: string) => void = setFlagsFromString,
): void {
  if (balancing === 'round-robin' || admin !== undefined) return;
  if ([...execArgv, nodeOptions].some((text) => COMPILER_FLAG.test(text))) return;
  for (const flag of FLAGS) setFlags(flag);
}
