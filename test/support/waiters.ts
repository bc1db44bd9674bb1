import { PATIENCE_MS } from './patience.js';

interface Wait {
  readonly holds: () => boolean;
  /** The error's message at the deadline. */
  readonly late: () => string;
  /** The error's message once it cannot hold any more. */
  readonly lost?: () => string | undefined;
  /** Default {@link PATIENCE_MS}. */
  readonly timeoutMs?: number | undefined;
}

/** Callers that wait for a condition, which is checked after each thing that happens. */
export class Waiters {
  readonly #checks = new Set<() => void>();

  /** Something has happened. */
  look(): void {
    for (const check of this.#checks) check();
  }

  /** Resolves once it holds; rejects at the deadline, or once it is lost. */
  async until({ holds, late, lost, timeoutMs = PATIENCE_MS }: Wait): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const settle = (error?: string): void => {
        clearTimeout(timer);
        this.#checks.delete(check);
        if (error === undefined) resolve();
        else reject(new Error(error));
      };
      const check = (): void => {
        if (holds()) return settle();
        const error = lost?.();
        if (error !== undefined) settle(error);
      };
      const timer = setTimeout(() => settle(late()), timeoutMs);
      this.#checks.add(check);
      check();
    });
  }
}
