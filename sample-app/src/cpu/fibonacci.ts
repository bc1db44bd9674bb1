export interface FibonacciAnswer {
  n: number;
  fibonacci: number;
}

/** fibonacci(45) alone keeps a core busy for about ten seconds. */
export const LARGEST_FIBONACCI = 45;

/** Naive on purpose: the time grows by the golden ratio with each n. */
export function fibonacci(n: number): number {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
