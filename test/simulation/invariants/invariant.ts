import type { Observation } from '../world.js';

/** Something that holds of a cluster, whatever happens in it. */
export interface Invariant {
  /** Checks one step. @throws Broken */
  after(step: Observation): void;
  /** Checks what must have come about once nothing is left to do. @throws Broken */
  atRest?(step: Pick<Observation, 'state' | 'world'>): void;
}

/** An invariant that does not hold. */
export class Broken extends Error {
  constructor(
    readonly invariant: string,
    seen: unknown,
  ) {
    super(seen === undefined ? invariant : `${invariant}: ${show(seen)}`);
  }
}

/** @param seen is asked for only where it does not hold. @throws Broken */
export function hold(invariant: string, holds: boolean, seen?: () => unknown): void {
  if (!holds) throw new Broken(invariant, seen?.());
}

function show(seen: unknown): string {
  return JSON.stringify(seen, (_, value: unknown) => (value instanceof Map ? [...value] : value));
}
