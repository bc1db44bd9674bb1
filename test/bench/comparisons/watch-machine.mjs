import { othersBetween, readMachine, shareBetween } from '../machine-use.mjs';

/**
 * Begins to watch which processes use the machine.
 *
 * @returns a function that ends the watch. From the pids of the measured systems and of the waiting
 *   systems it computes what all other processes used, and what the waiting systems used.
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
