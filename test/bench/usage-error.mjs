/** A mistake of whoever called: one line, no stack. */
export class UsageError extends Error {}
