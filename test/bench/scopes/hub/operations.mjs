import { median, percentile } from '../../statistics.mjs';
import { SharedCluster } from './shared-cluster.mjs';

/** How operations are asked for: one after the other in one worker, or many at once in each. */
const ONE = { load: 'one at a time', at: 1, workers: 1 };
const MANY = { load: '16 at once in each worker', at: 16 };

const cacheWork = ['get 1 KB', 'set 1 KB', 'get 64 KB', 'set 64 KB'];
const inBothLoads = (names) => names.flatMap((work) => [ONE, MANY].map((load) => ({ work, load })));

/** What is done, by part. */
const WORK = {
  cache: [...inBothLoads(cacheWork), { work: 'getOrSet', load: MANY }],
  lock: [...inBothLoads(['free lock']), { work: 'contended lock', load: MANY }],
  events: inBothLoads(['event']),
};
export const OPERATION_PARTS = Object.keys(WORK);

/** As the app has it. */
const MISS_EVERY_MS = 50;

const SYSTEMS = ['hub', 'redis'];

/** The same work by the hub and by Redis in turn, in windows; medians of the windows. */
export async function compareOperations({ node, workers, part, rounds, windowMs, progress }) {
  return SharedCluster.with({ node, workers, parts: [part] }, async (cluster) => {
    const idle = await cpuOfNothing(cluster);
    const windows = new Map();
    // The first round is for V8.
    for (let round = 0; round <= rounds; round += 1) {
      for (const { work, load } of WORK[part]) {
        for (const system of round % 2 === 0 ? SYSTEMS : SYSTEMS.toReversed()) {
          const name = `${work}, ${load.load}, ${system}`;
          const window = await measure(cluster, `${work} ${system}`, load, windowMs, idle);
          if (round === 0) windows.set(name, { work, load: load.load, system, all: [] });
          else windows.get(name).all.push(window);
        }
      }
      progress(`${part}: round ${round}/${rounds}`);
    }
    return [...windows.values()].map(({ all, ...about }) => ({ part, ...about, ...summary(all) }));
  });
}

/** Seconds of CPU a millisecond that all processes use when nobody asks for anything. */
export async function cpuOfNothing(cluster) {
  const ms = 1_500;
  const { seconds } = await cluster.cpuWhile(() => new Promise((end) => setTimeout(end, ms)));
  return seconds / ms;
}

async function measure(cluster, what, { at, workers }, ms, idle) {
  await cluster.delays();
  const startedAt = performance.now();
  const { result, seconds } = await cluster.cpuWhile(async () => {
    const told = await cluster.run(what, { ms, at, workers });
    const done = sum(told, ({ count }) => count);
    return {
      told,
      done,
      heard: what.startsWith('event') ? await allHeard(cluster, told, done) : [],
    };
  });
  const tookMs = performance.now() - startedAt;
  const { told, done, heard } = result;
  const latencies = (heard.length > 0 ? heard : told).flatMap((each) =>
    heard.length > 0 ? each.heard : each.latencies,
  );
  return {
    cpuMicros: ((seconds - idle * tookMs) / done) * 1e6,
    perSecond: (done / tookMs) * 1e3,
    p50Ms: median(latencies),
    p99Ms: percentile(latencies, 0.99),
    failed: sum(told, ({ failed }) => failed),
    computed: sum(told, ({ computed }) => computed ?? 0) / (tookMs / MISS_EVERY_MS),
    ...(await cluster.delays()),
  };
}

/** An event is done when all workers have heard it. */
async function allHeard(cluster, told, done) {
  const heard = [...told];
  const missing = () => done * cluster.ports.length - sum(heard, ({ heardCount }) => heardCount);
  for (const until = performance.now() + 3_000; missing() > 0 && performance.now() < until;) {
    heard.push(...(await cluster.run('nothing', { ms: 2, at: 1 })));
  }
  if (missing() > 0) throw new Error(`${missing()} events were not heard`);
  return heard;
}

function sum(all, read) {
  return all.reduce((total, each) => total + read(each), 0);
}

/** Medians; of the delays the greatest, too: the bound of the primary's holds always. */
export function summary(windows) {
  const of = (key) => median(windows.map((each) => each[key]));
  return {
    cpuMicros: of('cpuMicros'),
    leastCpuMicros: Math.min(...windows.map(({ cpuMicros }) => cpuMicros)),
    perSecond: Math.round(of('perSecond')),
    p50Ms: of('p50Ms'),
    p99Ms: of('p99Ms'),
    failed: windows.reduce((sum, { failed }) => sum + failed, 0),
    ...(windows[0].computed > 0 && { computedPerKey: of('computed') }),
    primaryP99Ms: of('primaryP99Ms'),
    worstPrimaryP99Ms: Math.max(...windows.map(({ primaryP99Ms }) => primaryP99Ms)),
    witnessP99Ms: of('witnessP99Ms'),
    worstWitnessP99Ms: Math.max(...windows.map(({ witnessP99Ms }) => witnessP99Ms)),
  };
}
