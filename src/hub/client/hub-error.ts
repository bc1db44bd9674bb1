/** Why the hub has not answered. */
export type HubFailure =
  /** Not in time. */
  | 'timeout'
  /** The connection was lost, or does not exist yet. */
  | 'lost'
  /** A hub is impossible, so nobody waits for one. */
  | 'unavailable'
  /** The hub does not take such a request, or it is too large to be sent. */
  | 'refused';

export class HubError extends Error {
  constructor(
    readonly failure: HubFailure,
    message: string,
  ) {
    super(message);
  }
}

/** @returns `undefined` in place of a {@link HubError}. */
export async function orNone<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof HubError) return undefined;
    throw error;
  }
}
