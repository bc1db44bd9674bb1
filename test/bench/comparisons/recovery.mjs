import { setTimeout as delay } from 'node:timers/promises';
import { answeredBy, ask } from '../load/ask.mjs';
import { runScript } from '../load/client.mjs';
import { compare } from './compare.mjs';

/** Longest wait for a worker to be replaced. */
const PATIENCE_MS = 20_000;

const SYSTEMS = [
  'one-process',
  'node-cluster-round-robin',
  'node-cluster-shared',
  'reuse-port',
  'pm2',
  'nestjs-cluster',
  'nestjs-cluster-reuse-port',
  'nestjs-cluster-round-robin',
];

const INCIDENTS = {
  'a worker is killed': (running) => {
    process.kill(running.workerPids()[0], 'SIGKILL');
  },
  'a worker hangs': (running) => {
    // The worker that gets this request never answers.
    ask(running.port, '/faults/spin').catch(() => {});
  },
};

/** The number of requests that an incident makes fail, and the time until the recovery. */
export const recovery = {
  name: 'recovery',
  title: 'Recovery after a kill and after a hang',
  about: `One of the workers is killed by SIGKILL, or made to hang by a request that never ends. Recovery is the time until another worker answers in its place. For ${PATIENCE_MS / 1_000} s GET /hello is asked every 50 ms, each time on a new connection; what is not answered within a second is a failed probe.`,
  rounds: 3,
  adapters: ['express'],
  parameters: { probeEveryMs: 50, probeTimeoutMs: 1_000 },
  metric: 'failedProbes',
  async rows(run) {
    const rows = [];
    for (const [group, cause] of Object.entries(INCIDENTS)) {
      const compared = await compare({
        run,
        group,
        contestants: run.pick(SYSTEMS).map((system) => ({ system, env: { SAMPLE_FAULTS: '1' } })),
        measure: (running) => measure(running, cause),
      });
      rows.push(...compared);
    }
    return rows;
  },
};

async function measure(running, cause) {
  const before = new Set(running.workerPids());
  const probing = runScript(running, 'probe-process.mjs', { seconds: PATIENCE_MS / 1_000 });
  await delay(500); // the probes run
  cause(running);
  const isNew = (pid) => !before.has(pid);
  const recoveryMs = await answeredBy(running.port, 1, isNew, PATIENCE_MS);
  const { failed } = await probing;
  return {
    replaced: recoveryMs !== undefined,
    recoveryMs,
    failedProbes: failed,
  };
}
