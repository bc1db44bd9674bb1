import { setTimeout as delay } from 'node:timers/promises';

/** A client that repeats its request, once a second. */
const REPEATS = 5;
const REPEAT_MS = 1_000;

/** Engine.IO takes at most a million characters in one POST. */
const POST_CHARACTERS = 900_000;

/** Hostile clients, and code of the app that goes too far: nothing may end but the one request. */
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
