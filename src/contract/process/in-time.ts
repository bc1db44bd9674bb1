/** Settles like `promise`, or after `timeoutMs` with the result of `late`. Leaves no timer behind. */
export async function inTime<T>(promise: Promise<T>, timeoutMs: number, late: () => T): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const overdue = new Promise<T>((resolve) => {
    timer = setTimeout(() => resolve(late()), timeoutMs);
  });
  try {
    return await Promise.race([promise, overdue]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * How long to wait for an address that is in use, in ms. After a restart, the old program may still
 * hold the address: `nest start --watch` waits only for a shell, and a blocked worker keeps its
 * socket open. Nginx and Gunicorn also wait.
 */
const PATIENCE_MS = 3_000;
const RETRY_MS = 100;

/**
 * Calls `take` to take an address. Retries for 3 s while another process has the address.
 * Other errors are thrown immediately.
 */
export async function whenFree<T>(take: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await take();
    } catch (error) {
      const { cause } = error as { readonly cause?: NodeJS.ErrnoException };
      if (cause?.code !== 'EADDRINUSE' || performance.now() >= deadline) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}
