import type { HubClient } from '../client/hub-client.js';
import type { Question } from '../client/hub-client.interface.js';
import { orNone } from '../client/hub-error.js';

/** The longest wait for the hub to confirm. */
const TELL_MS = 5_000;

/** With more keys the whole cache is cleared. */
const MAX_KEYS = 10_000;

/** Keys of which the hub may have an old value, because it did not confirm a change. */
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
   * Comes before all other questions. A new hub is told as well: workers that reached it earlier may
   * have set old values again.
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
