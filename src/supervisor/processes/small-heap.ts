import { setFlagsFromString } from 'node:v8';

/** A user who sets one of these flags has decided. */
const SEMI_SPACE_FLAG = /--(min|max)[-_]semi[-_]space|--semi[-_]space/;

/**
 * Keeps the young generation of V8's heap as small as it is at the start. In a
 * process that relays messages it would grow to 16 MB, and never shrink while
 * metrics are scraped. V8 reads this flag each time that it would grow.
 */
export function keepYoungGenerationSmall(
  execArgv: readonly string[] = process.execArgv,
  nodeOptions: string = process.env['NODE_OPTIONS'] ?? '',
  setFlags: (flags: string) => void = setFlagsFromString,
): void {
  if ([...execArgv, nodeOptions].some((text) => SEMI_SPACE_FLAG.test(text))) return;
  setFlags('--semi-space-growth-factor=1');
}
