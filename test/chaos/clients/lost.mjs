/** A request, or a connection, that ended in no way that its server had announced. */
export class Lost extends Error {
  /** @param outcome reset, closed, refused, timeout or unexpected. */
  constructor(outcome, what) {
    super(what);
    this.outcome = outcome;
  }

  /** By what an error of a socket says. */
  static of(error) {
    const { code, message } = error;
    const outcome = { ECONNREFUSED: 'refused', ETIMEDOUT: 'timeout' }[code] ?? 'reset';
    return new Lost(outcome, code ?? message);
  }
}

/** How long anything may take: longer than a hung worker may go on, and its successor takes to start. */
export const PATIENCE_MS = 20_000;
