/**
 * A program that is started again may meet the one before it: `nest start --watch` waits for a
 * shell alone, and a worker that is blocked holds on to its socket. Nginx and Gunicorn wait, too.
 */
const PATIENCE_MS = 3_000;
const RETRY_MS = 100;

/**
 * Takes an address; where somebody else has it, again and again for as long as a restart needs.
 *
 * @throws the AddressUnavailableError of `take` when it is still taken then; at once whatever else it throws.
 */
export async function whenFree<T>(take: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await take();
    } catch (error) {
      if (!isTaken(error) || performance.now() >= deadline) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

function isTaken(error: unknown): boolean {
  const { cause } = error as { readonly cause?: NodeJS.ErrnoException };
  return cause?.code === 'EADDRINUSE';
}
