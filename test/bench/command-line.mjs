import { parseArgs } from 'node:util';

/** A mistake in the command line. It is printed as one line, without a stack. */
export class UsageError extends Error {}

/** The values of a command line. @throws UsageError */
export function parsed(args, options) {
  try {
    return parseArgs({ args, options }).values;
  } catch (error) {
    throw new UsageError(`${error.message} (--help lists the options)`);
  }
}

/** @throws UsageError unless all names of an option are known. */
export function known(option, names, all) {
  const unknown = names.find((name) => !all.includes(name));
  if (unknown === undefined) return names;
  throw new UsageError(
    `${option} ${unknown}: there is none of this name; known are ${all.join(', ')}`,
  );
}

/** @throws UsageError unless the text is a whole number from 1 on. */
export function count(option, text) {
  if (/^[1-9]\d{0,6}$/.test(text)) return Number(text);
  throw new UsageError(`${option} ${text}: expected a whole number from 1 on`);
}
