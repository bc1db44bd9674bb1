import { othersBetween, readMachine, shareBetween } from '../machine-use.mjs';

/**
 * Begins to watch who uses the machine.
 *
 * @returns a function that ends it: given the pids of systems, those that are measured and those
 *   that wait meanwhile, it tells what everybody else used, and what those that waited did.
 */
export function watchMachine() {
  const before = readMachine();
  return ({ pids, waiting = [] }) => {
    const after = readMachine();
    // Load generators are children of this process.
    return {
      others: othersBetween(before, after, [process.pid, ...pids, ...waiting]),
      waiting: shareBetween(before, after, waiting),
    };
  };
}

/** Its own processes; what they fork later descends from them. */
export function pidsOf(running) {
  return [...running.frontPids(), ...running.workerPids()];
}
