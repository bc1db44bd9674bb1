import { HubError } from './hub-error.js';

/** Whether the process has a connection to the hub, and whether a connection is possible. */
export class Availability {
  readonly #waiting = new Set<() => void>();
  /** The reason why the hub cannot be used now. */
  #impossible: string | undefined;
  open = false;

  get isImpossible(): boolean {
    return this.#impossible !== undefined;
  }

  /** Waits for a connection, for at most `withinMs`. @returns whether there is a connection. */
  ready(withinMs: number): Promise<boolean> {
    if (this.open || this.isImpossible) return Promise.resolve(this.open);
    return new Promise((resolve) => {
      const settle = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(settle);
        resolve(this.open);
      };
      const timer = setTimeout(settle, withinMs);
      this.#waiting.add(settle);
    });
  }

  opened(): void {
    this.open = true;
    this.#impossible = undefined;
  }

  impossible(why: string): void {
    this.#impossible = why;
    this.tellWaiting();
  }

  tellWaiting(): void {
    for (const settle of this.#waiting) settle();
  }

  /** The error for a question that could not be sent. */
  error(): HubError {
    return this.#impossible === undefined
      ? new HubError('lost', 'there is no connection to the hub')
      : new HubError('unavailable', `there is no hub: ${this.#impossible}`);
  }
}
