/** What is written while a worker comes up, and is seen only if it does not. See `boot-output.cts`. */
export interface KeptOutput {
  /** Has the primary show it if this worker does not come up; says whether it will. */
  keepText(text: string): boolean;
  /** The same of an error that keeps this worker from coming up. One that Node has to print is not kept. */
  keepError(error: unknown): boolean;
  /** The worker is up: what it writes is seen. Leaves nothing behind. */
  end(): void;
}

/** What `early-boot.cts` has begun; `undefined` where all is seen at once. */
export function keptOutput(): KeptOutput | undefined {
  return Reflect.get(globalThis, Symbol.for('nestjs-cluster.kept-output')) as
    KeptOutput | undefined;
}
