import { parentPort, workerData } from 'node:worker_threads';

const { simulation, seed, runs, shell } = workerData;
const { simulate } = await import(simulation);
const { lives, failure } = simulate({ seed, runs, shell, shrinks: false });
parentPort.postMessage(failure && { seed: failure.seed, lives, invariant: failure.invariant });
