import { Readable } from 'node:stream';
import { Refusal } from '../../control/route.js';

/** Maximum number of pages that can be open at once. Another page is refused. */
const MAX_VIEWERS = 16;

/** Maximum number of unread bytes of a page. Enough for the history and some samples of 256 workers. */
export const MAX_UNREAD_BYTES = 2 * 1024 * 1024;

/** The streams of server-sent events to all open pages. */
export class Viewers {
  readonly #open = new Set<Readable>();

  get size(): number {
    return this.#open.size;
  }

  /**
   * @param first the first messages.
   * @throws Refusal if too many pages are open.
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

  /**
   * Sends to all pages. Drops a page that does not read. The page connects again and gets the history.
   */
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
