import { Readable } from 'node:stream';
import { Refusal } from '../../control/route.js';

/** The number of pages open at once. */
const MAX_VIEWERS = 16;

/** Unread bytes of a viewer. Enough for the history and some samples of 256 workers. */
export const MAX_UNREAD_BYTES = 2 * 1024 * 1024;

/** Server-sent events for all open pages. */
export class Viewers {
  readonly #open = new Set<Readable>();

  get size(): number {
    return this.#open.size;
  }

  /**
   * @param first the first message.
   * @throws Refusal if there are too many.
   */
  open(first: string): Readable {
    if (this.#open.size >= MAX_VIEWERS) {
      throw new Refusal(503, 'TOO_MANY_VIEWERS', `the dashboard is open ${MAX_VIEWERS} times`);
    }
    const viewer = new Readable({ read: () => {}, highWaterMark: MAX_UNREAD_BYTES });
    this.#open.add(viewer);
    viewer.once('close', () => this.#open.delete(viewer));
    viewer.push(first);
    return viewer;
  }

  /** Drops a viewer that does not read: its page connects again, and gets the history. */
  tell(text: string): void {
    for (const viewer of this.#open) {
      if (viewer.readableLength + text.length > MAX_UNREAD_BYTES) viewer.destroy();
      else viewer.push(text);
    }
  }

  end(): void {
    for (const viewer of this.#open) viewer.destroy();
  }
}

export function frame(event: string, data: unknown): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
