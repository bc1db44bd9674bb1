/**
 * How long to wait for an address that is taken, in ms. After a restart, the old program may still
 * have it: `nest start --watch` waits only for a shell, and a blocked worker keeps its socket open.
 * Nginx and Gunicorn also wait.
 */
const PATIENCE_MS = 3_000;
const RETRY_MS = 100;

/**
 * Calls `take` to take an address. If another process has it, tries again for some seconds.
 *
 * @throws the ClusterAddressError of `take` if the address is still taken then; any other error of
 * `take` at once.
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
