import { setTimeout as delay } from 'node:timers/promises';

/** A client that does not tire asks five times a second. */
const REPEAT_MS = 200;
const MOST_REPEATS = 100;
/** All workers may take a fatal request before the first has ended; two more ends prove what it is. */
const PROOFS = 2;

/** Engine.IO takes at most a million characters in one POST. */
const POST_CHARACTERS = 900_000;

/** Hostile clients, and code of the app that goes too far: nothing may end but the one request. */
export const HOSTILE_FAULTS = [
  {
    name: 'fatal',
    parameters: (random) => ({ kind: random.of(['reject', 'timer', 'spin', 'heap']) }),
    /** Each worker that has it ends, until it is kept from the app. */
    async inject(run, { kind }) {
      const path = run.fault(kind);
      const before = run.cluster.deaths.length;
      const doomed = new Set();
      let answered;
      run.undoLater(() => doomed.forEach((pid) => run.spare(pid)));
      for (let n = 0; n < MOST_REPEATS && answered !== 503; n += 1) {
        for (const pid of run.cluster.workerPids) {
          if (!doomed.has(pid)) run.doom(pid, 'fatal');
          doomed.add(pid);
        }
        void run.cluster.app(path).then(
          ({ status }) => (answered = status),
          () => {}, // its worker ended
        );
        await delay(REPEAT_MS);
      }
      await run.eventually('the fatal request is answered 503', async () => {
        answered = (await run.cluster.app(path).catch(() => {}))?.status;
        return answered === 503;
      });
      await run.until('another worker for each', ({ settled }) => settled);
      const deaths = run.cluster.deaths.length - before;
      // A worker whose heap fills is replaced for its memory: its slot has two workers until it ends.
      const perSlot = kind === 'heap' ? 2 : 1;
      if (deaths > perSlot * run.workers + PROOFS)
        run.failed(`the fatal request (${kind}) ended ${deaths} workers`);
    },
  },
  {
    name: 'frame',
    parameters: (random) => ({ megabytes: random.between(25, 60) }),
    /** A worker keeps its connection to the hub, and its locks. */
    async inject(run, { megabytes }) {
      const { status, body } = await run.cluster.app(`/shared/frame/${megabytes}`);
      if (status !== 200) return run.failed(`a huge frame: ${status} ${body}`);
      const { answer, kept } = JSON.parse(body);
      if (answer !== 'refused' || !kept) run.failed(`a huge frame: ${body}`);
    },
  },
  {
    name: 'connects',
    parameters: (random) => ({ clients: random.between(1, 4) }),
    /** Clients of Socket.IO who ask for thousands of sessions that they have made up. */
    async inject(run, { clients }) {
      const packet = `40${JSON.stringify({ pid: 'a'.repeat(20), offset: '0.0' })}`;
      const count = Math.floor(POST_CHARACTERS / (packet.length + 1));
      const body = Array.from({ length: count }, () => packet).join('\x1e');
      const flood = async () => {
        const url = '/socket.io/?EIO=4&transport=polling';
        const { sid } = JSON.parse((await run.cluster.app(url)).body.slice(1));
        await run.cluster.app(`${url}&sid=${sid}`, undefined, body).catch(() => {}); // cut off
      };
      await Promise.all(Array.from({ length: clients }, flood));
    },
  },
];
