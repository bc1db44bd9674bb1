// Hours of mixed load with kills and reloads, in parts: npm run soak -- --help
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describeMachine, readCommit, readVersions } from '../bench/machine.mjs';
import { median } from '../bench/statistics.mjs';
import { UsageError } from '../bench/command-line.mjs';
import { makeChaos } from './chaos.mjs';
import { judge } from './judge.mjs';
import { Recorder } from './recorder.mjs';
import { describe } from './report.mjs';
import { timetable } from './schedule.mjs';
import { readSettings } from './settings.mjs';

const RESULT = fileURLToPath(new URL('../bench/results/soak.json', import.meta.url));
const HELP = `npm run soak -- --minutes N [options of npm run chaos]

Runs a cluster under the clients of npm run chaos for N minutes. A worker is killed every five
minutes, and the app is reloaded every ten. The result is one more part of
test/bench/results/soak.json, which npm run bench:report makes a table of.`;

const interrupted = new Promise((resolve) => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => resolve(signal));
});

try {
  await main(process.argv.slice(2));
} catch (error) {
  console.error(error instanceof UsageError ? `error: ${error.message}` : error);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
// Handlers of signals are all that is left.
process.exit();

async function main(args) {
  const settings = readSettings(['--faults', 'kill,reload', ...args]);
  if (settings.help) return console.log(HELP);
  const faults = Object.fromEntries(settings.faults.map((fault) => [fault.name, fault]));
  const began = { date: new Date().toISOString(), commit: readCommit() };
  let recorder;
  const seen = await makeChaos(
    {
      ...settings,
      schedule: timetable(faults),
      observe(cluster) {
        recorder = new Recorder(cluster);
        return () => recorder.stop();
      },
    },
    interrupted,
    ({ name, recoveryMs, lost, left }) =>
      console.error(
        `${name}: recovered in ${recoveryMs ?? '-'} ms; lost so far ${lost}; ${Math.round(left / 60_000)} min left`,
      ),
  );
  const verdict = judge(settings, seen);
  console.log(describe(verdict));
  process.exitCode = verdict.ok ? 0 : 1;
  if (recorder?.samples.length > 0) {
    keep({ ...began, ...figuresOf(verdict), samples: recorder.samples }, settings);
  }
}

function figuresOf({ ok, clients, unallowed, faults }) {
  const made = Object.fromEntries(faults.map(({ name, count }) => [name, count]));
  const outcomes = Object.values(clients).flatMap(({ ended: _ended, ...counts }) =>
    Object.entries(counts),
  );
  const sum = (some) => some.reduce((total, [, count]) => total + count, 0);
  return {
    held: ok,
    failures: [...new Set(unallowed.map(({ client, what }) => `${client}: ${what}`))],
    asked: sum(outcomes),
    lost: sum(outcomes.filter(([outcome]) => outcome !== 'success')),
    lostOtherwise: unallowed.length,
    kills: made.kill,
    reloads: made.reload,
  };
}

/** Adds the rows of this part to what earlier runs have kept. */
function keep(part, { workers, adapter, node }) {
  const kept = existsSync(RESULT) ? JSON.parse(readFileSync(RESULT, 'utf8')) : undefined;
  const { minutes = 0, parts = 0 } = kept?.parameters ?? {};
  const result = {
    scope: 'soak',
    title: 'A soak',
    about:
      'Clients of seven kinds check every answer: kept and new connections, POST, WebSocket, server-sent events, a microservice and @CpuBound(). A worker is killed every five minutes and the app is reloaded every ten. A part is a run with a cluster of its own. The primary has the admin listener, which is scraped without pause, and the hub, so it holds more than in the scope memory. Other programs used the machine meanwhile, so compare latencies with care.',
    command: 'npm run soak -- --minutes N',
    date: part.date,
    commit: part.commit,
    machine: describeMachine(),
    versions: readVersions(versionOf(node)),
    parameters: { minutes: minutes + part.samples.length, workers, adapter, parts: parts + 1 },
    rows: [...(kept?.rows ?? []), ...rowsOf(part, parts)],
  };
  writeFileSync(RESULT, `${JSON.stringify(result, null, 2)}\n`);
}

function versionOf(node) {
  return execFileSync(node, ['--version'], { encoding: 'utf8' }).trim().slice(1);
}

function rowsOf({ date, commit, samples, held, failures, ...counts }, index) {
  const row = { system: 'nestjs-cluster', ours: true };
  const verdict = held ? '' : [', did not hold', ...failures].join('; ');
  const label = `part ${index + 1}: ${samples.length} min, ${date.slice(0, 10)}, commit ${commit}${verdict}`;
  const middle = (some, read) => median(some.map(read).filter(Number.isFinite));
  const third = Math.floor(samples.length / 3);
  const thirds = {
    'second third': samples.slice(third, -third),
    'last third': samples.slice(-third),
  };
  return [
    {
      ...row,
      group: 'Requests',
      label,
      ...counts,
      p50Ms: middle(samples, ({ p50Ms }) => p50Ms),
      p99Ms: middle(samples, ({ p99Ms }) => p99Ms),
    },
    ...Object.entries(third > 0 ? thirds : {}).map(([name, some]) => ({
      ...row,
      group: 'What the primary holds',
      label: `part ${index + 1}, ${name}`,
      frontRssBytes: middle(some, ({ primary }) => primary.residentBytes),
      frontHeapBytes: middle(some, ({ primary }) => primary.heapBytes),
      frontDescriptors: middle(some, ({ primary }) => primary.descriptors),
    })),
  ];
}
