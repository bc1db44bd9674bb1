/** The number of threads of a slot: the cores divided by the workers. The first slots get the remainder. */
export function threadsFor(cores: number, workers: number, slot: number): number {
  return Math.max(1, Math.floor(cores / workers) + (slot < cores % workers ? 1 : 0));
}
