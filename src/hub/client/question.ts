import type { FromHub, HubRequest } from '../wire/protocol.js';
import type { HubError } from './hub-error.js';

export interface Answer {
  readonly header: FromHub;
  readonly body: Buffer;
}

type WithoutId<T> = T extends unknown ? Omit<T, 'id'> : never;
export type Question = WithoutId<Exclude<HubRequest, { op: 'hello' }>>;

/** A question that has no answer yet. */
export interface Pending {
  readonly op: HubRequest['op'];
  readonly settle: (answer: Answer | HubError) => void;
  readonly timer: NodeJS.Timeout | undefined;
}
