/** The cores, shared out; the first slots have what is left over. */
export function threadsFor(cores: number, workers: number, slot: number): number {
  return Math.max(1, Math.floor(cores / workers) + (slot < cores % workers ? 1 : 0));
}
