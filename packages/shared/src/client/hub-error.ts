/** The reason why a question has no answer. */
export type HubFailure =
  /** The hub did not answer in time. */
  | 'timeout'
  /** The connection was lost, or does not exist yet. */
  | 'lost'
  /** The hub cannot be used now, so callers do not wait for it. */
  | 'unavailable'
  /** The hub refuses the request, or the request is too large to be sent. */
  | 'refused';

export class HubError extends Error {
  constructor(
    readonly failure: HubFailure,
    message: string,
  ) {
    super(message);
  }
}

/** @returns the answer; `undefined` in place of a {@link HubError}. */
export async function orNone<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof HubError) return undefined;
    throw error;
  }
}
