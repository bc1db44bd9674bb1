/**
 * A program that is started again may meet the one before it: `nest start --watch` waits for a
 * shell alone, and a worker that is blocked holds on to its socket. Nginx and Gunicorn wait, too.
 */
const PATIENCE_MS = 3_000;
const RETRY_MS = 100;

/**
 * Takes an address. If another process has it, this tries again for as long as a restart needs.
 *
 * @throws the ClusterAddressError of `take` if the address is still taken then; any other error
 * of `take` at once.
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
