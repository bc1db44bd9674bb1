/** Resolves as `promise` does, or after `timeoutMs` with what `late` returns. Leaves no timer behind. */
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
