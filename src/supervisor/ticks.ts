/** What happens at intervals, until it is stopped. */
export class Ticks {
  readonly #timers: NodeJS.Timeout[] = [];

  every(ms: number, action: () => void): void {
    this.#timers.push(setInterval(action, ms));
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }
}
