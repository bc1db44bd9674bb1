import type { HubClient } from '../client/hub-client.js';
import type { Question } from '../client/hub-client.interface.js';
import { orNone } from '../client/hub-error.js';

/** Maximum wait for the hub to confirm a deletion, in ms. */
const TELL_MS = 5_000;

/** Maximum number of remembered keys. Beyond it, the whole cache is cleared. */
const MAX_KEYS = 10_000;

/** Keys with values in the hub that may be old, because the hub did not confirm a change. */
export class StaleKeys {
  readonly #keys = new Set<string>();
  #all = false;

  constructor(
    private readonly hub: HubClient,
    private readonly cache: string,
  ) {
    hub.listen({ opened: () => this.#tell(), drained: () => this.#tell() });
  }

  /** @param key `undefined` for all keys. */
  add(key: string | undefined): void {
    if (key !== undefined) this.#keys.add(key);
    this.#all ||= key === undefined || this.#keys.size > MAX_KEYS;
    if (this.#all) this.#keys.clear();
  }

  /**
   * Deletes the keys before any other question is sent. Even a new hub may have old values, set by
   * workers that connected to it earlier.
   */
  #tell(): void {
    const keys = this.#all ? [undefined] : [...this.#keys];
    this.#keys.clear();
    this.#all = false;
    const { cache } = this;
    for (const key of keys) {
      const question: Question =
        key === undefined ? { op: 'clear', cache } : { op: 'delete', cache, key };
      void orNone(this.hub.askUntil(question, TELL_MS)).then((answer) => {
        if (answer === undefined) this.add(key);
      });
    }
  }
}
