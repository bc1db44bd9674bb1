// Runs slowhttptest on a cluster whose processes may open few descriptors. The slow clients may take all
// connections that there are. The cluster must live, and serve as soon as they have left.
// Options: --descriptors 256, --seconds 12: of each attack.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Cluster } from '../cluster.mjs';
import { needs } from '../install.mjs';
import { Verdict } from '../verdict.mjs';

const { values: options } = parseArgs({
  options: {
    descriptors: { type: 'string', default: '256' },
    seconds: { type: 'string', default: '12' },
  },
});
needs('slowhttptest', 'slowhttptest');
const ATTACKS = {
  'slow headers': ['/whoami', '-H'],
  'slow bodies': ['/whoami', '-B'],
  'slow reads': ['/metrics', '-X -k 4 -n 2 -w 10 -y 20 -z 4'],
};

const cluster = await Cluster.start({
  within: ['sh', '-c', `ulimit -n ${options.descriptors}; exec "$0" "$@"`],
  options: { admin: { port: 0 } },
});
const ask = async (url, ms) => {
  const signal = AbortSignal.timeout(ms);
  const response = await fetch(url, { headers: { connection: 'close' }, signal });
  if (response.status !== 200) throw new Error(`${url}: ${response.status}`);
  return response.text();
};
const descriptors = () =>
  [cluster.child.pid, ...cluster.workers.values()].map(
    (pid) => readdirSync(`/proc/${pid}/fd`).length,
  );
const verdict = new Verdict();
async function passes(name, check) {
  verdict.add(name, await check().then((problem) => problem, String));
}
/** Ends with an error if `check` still fails after that time. */
async function within(ms, check) {
  for (const end = performance.now() + ms; ; await delay(100)) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > end) throw error;
    }
  }
}

for (const [name, [path, flags]] of Object.entries(ATTACKS)) {
  const before = descriptors();
  const args = `${flags} -c 600 -r 300 -i 2 -l ${options.seconds} -u ${cluster.url}${path}`;
  const attack = spawn('slowhttptest', args.split(' '), { stdio: 'ignore' });
  const left = once(attack, 'exit');
  await delay(4_000);
  const most = Math.max(...descriptors());
  const served = await ask(`${cluster.url}/whoami`, 3_000).then(
    () => 'answers',
    () => 'does not answer',
  );
  console.log(`${name}: the busiest process has ${most} descriptors open; the app ${served}`);
  await passes(`${name}: the admin listener answers`, async () => {
    await ask(`${cluster.adminUrl}/metrics`, 5_000);
  });
  await passes(`${name}: a worker that is killed is replaced`, async () => {
    const pid = cluster.workers.get(0);
    process.kill(pid, 'SIGKILL');
    await cluster.until('another worker', () => cluster.workers.get(0) !== pid);
  });
  await left;
  await passes(`${name}: the app serves within 5 s after it`, () =>
    within(5_000, async () => void (await ask(`${cluster.url}/whoami`, 1_000))),
  );
  await passes(`${name}: no descriptor is left open`, () =>
    within(10_000, async () => {
      const now = descriptors();
      if (now.some((count, n) => count > before[n] + 5))
        throw new Error(`${before.join()} → ${now.join()}`);
    }),
  );
}
await verdict.addEnd(cluster, Object.keys(ATTACKS).length);
verdict.end();
