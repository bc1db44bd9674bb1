import { parentPort, workerData } from 'node:worker_threads';

const { simulation, seed, runs, shell } = workerData;
const { simulate } = await import(simulation);

parentPort.postMessage(play());

/** Plays one life after the other until one fails. Reports each life that has ended. */
function play() {
  for (let lives = 1; lives <= runs; lives += 1) {
    const life = { seed: seed + lives - 1, runs: 1 };
    const { failure } = simulate({ ...life, shell, shrinks: false });
    if (failure) return { seed: failure.seed, lives, invariant: failure.invariant };
    parentPort.postMessage('ended');
  }
  return { problem: `NOT FOUND in ${runs} lives` };
}
