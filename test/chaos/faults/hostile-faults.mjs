import { setTimeout as delay } from 'node:timers/promises';

/** A client that repeats its request, once a second. */
const REPEATS = 5;
const REPEAT_MS = 1_000;

/** Hostile clients: nothing may end but the one request. */
export const HOSTILE_FAULTS = [
  {
    name: 'fatal',
    parameters: (random) => ({ kind: random.of(['reject', 'timer', 'spin', 'heap']) }),
    /** Each worker that has it ends, and another takes its place. */
    async inject(run, { kind }) {
      const doomed = new Set();
      let open = 0;
      run.undoLater(() => doomed.forEach((pid) => run.spare(pid)));
      for (let n = 0; n < REPEATS || open > 0; n += 1) {
        for (const pid of run.cluster.workerPids) {
          if (!doomed.has(pid)) run.doom(pid, 'fatal');
          doomed.add(pid);
        }
        if (n < REPEATS) {
          open += 1;
          const over = () => void (open -= 1); // mostly because its worker ended
          void run.cluster.app(run.fault(kind)).then(over, over);
        }
        await delay(REPEAT_MS);
      }
      await run.until('another worker for each', ({ settled }) => settled);
    },
  },
];
