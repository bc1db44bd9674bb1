/** A mistake in the command line. It is printed as one line, without a stack. */
export class UsageError extends Error {}
