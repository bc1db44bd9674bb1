import type { Observation } from '../world.js';

/** A property of a cluster that holds whatever happens in the cluster. */
export interface Invariant {
  /** Checks one step. @throws Broken */
  after(step: Observation): void;
  /** Checks a cluster in which nothing is left to do. @throws Broken */
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

/** @param seen is shown if the invariant does not hold. @throws Broken */
export function hold(invariant: string, holds: boolean, seen?: unknown): void {
  if (!holds) throw new Broken(invariant, seen);
}

function show(seen: unknown): string {
  return JSON.stringify(seen, (_, value: unknown) => (value instanceof Map ? [...value] : value));
}
