import { setTimeout as delay } from 'node:timers/promises';
import { answeredBy } from '../load/ask.mjs';
import { lossesOf } from '../load/losses.mjs';
import { sum } from '../statistics.mjs';
import { compare } from './compare.mjs';
import { EVERYBODY } from '../systems/index.mjs';

/** Clients ask on for a while, so that what is lost late is not taken for the next one's. */
const PAUSE_MS = 500;

/** Longest wait for a worker in the place of the one that was killed. */
const PATIENCE_MS = 30_000;

const CLIENTS =
  '18 clients ask without pause and never again for what was lost: 6 on kept connections, 6 on a new one each time, 6 post 16 KB.';

/** Only systems that do it by themselves: where it is left to the user, there is nothing to measure. */
function able(run, names, ability, missing) {
  return run.pick(names).map((system) => ({
    system: {
      ...system,
      missing: async (options) =>
        (await system.missing?.(options)) ?? lacks(system, ability, missing),
    },
  }));
}

function lacks(system, ability, missing) {
  return system.abilities.includes(ability) ? undefined : missing;
}

export const reloads = {
  name: 'reloads',
  title: 'Requests lost in reloads',
  about: `${CLIENTS} Meanwhile the app is reloaded, twice in each of ten starts, in the way that the system offers.`,
  rounds: 10,
  adapters: ['express', 'fastify'],
  parameters: {},
  events: 2,
  metric: 'lost',
  rows(run) {
    return compare({
      run,
      contestants: able(run, EVERYBODY, 'reload', 'has no reload: whoever runs it writes one'),
      async measure(running) {
        const { took, metrics } = await lossesOf(running, run.events, () => running.reload());
        return { ...metrics, reloadMs: sum(took) / took.length };
      },
    });
  },
};

export const kills = {
  name: 'kills',
  title: 'Requests lost in kills',
  about: `${CLIENTS} Meanwhile a worker is killed by SIGKILL, three times in each of ten starts, the next one when as many workers as before answer again. Requests in flight in the killed worker cannot be saved. Nothing else should be lost.`,
  rounds: 10,
  adapters: ['express', 'fastify'],
  parameters: {},
  events: 3,
  metric: 'lost',
  rows(run) {
    return compare({
      run,
      contestants: able(
        run,
        EVERYBODY,
        'supervision',
        'has no worker that can be killed and is replaced',
      ),
      async measure(running, { workers }) {
        const recoveries = [];
        const { metrics } = await lossesOf(running, run.events, async () => {
          const [victim] = running.workerPids();
          process.kill(victim, 'SIGKILL');
          const killed = performance.now();
          const lives = (pid) => pid !== victim;
          await answeredBy(running.port, workers, lives, PATIENCE_MS);
          recoveries.push(performance.now() - killed);
          await delay(PAUSE_MS);
        });
        return { ...metrics, recoveryMs: sum(recoveries) / recoveries.length };
      },
    });
  },
};
