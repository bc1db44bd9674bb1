/** The samples of a metric on a page in Prometheus text format. */
export function* samplesOf(
  page: string,
  name: string,
): Generator<{ readonly labels: string; readonly value: number }> {
  const lines = new RegExp(`^${name}(?:\\{(.*)\\})? (\\S+)$`, 'gm');
  for (const [, labels = '', value] of page.matchAll(lines)) yield { labels, value: Number(value) };
}

/** The sum of all samples of a metric, or `undefined` if there are none. */
export function sumOf(page: string, name: string): number | undefined {
  let sum: number | undefined;
  for (const { value } of samplesOf(page, name)) sum = (sum ?? 0) + value;
  return sum;
}

/** The reason why `fetch` failed. The message of the error's cause says more than its own. */
export function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error && cause.message !== '' ? cause.message : message;
}
