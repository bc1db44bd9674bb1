// Hours of mixed load with kills and reloads: npm run soak -- --help
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describeMachine, readCommit, readVersions } from '../bench/machine.mjs';
import { sum } from '../bench/statistics.mjs';
import { main } from './run.mjs';
import { timetable } from './schedule.mjs';

const RESULT = fileURLToPath(new URL('../bench/results/soak.json', import.meta.url));
const HELP = `npm run soak -- --minutes N [options of npm run chaos]

Runs a cluster under the clients of npm run chaos for N minutes. A worker is killed every five
minutes, and the app is reloaded every ten. The result is test/bench/results/soak.json, which
npm run bench:report makes a table of.`;

const began = { date: new Date().toISOString(), commit: readCommit() };

await main(['--faults', 'kill,reload', ...process.argv.slice(2)], HELP, {
  schedule: ({ faults }) =>
    timetable(Object.fromEntries(faults.map((fault) => [fault.name, fault]))),
  finish(verdict, { seconds, workers, adapter, node }) {
    const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim().slice(1);
    const result = {
      scope: 'soak',
      title: 'A soak',
      about:
        'Clients of six kinds check every answer: kept and new connections, POST, WebSocket, server-sent events and @CpuBound(). A worker is killed every five minutes and the app is reloaded every ten. The primary has the admin listener, which is scraped without pause, so it holds more than in the scope memory.',
      command: 'npm run soak -- --minutes N',
      ...began,
      machine: describeMachine(),
      versions: readVersions(version),
      parameters: { minutes: seconds / 60, workers, adapter },
      rows: rowsOf(verdict),
    };
    writeFileSync(RESULT, `${JSON.stringify(result, null, 2)}\n`);
  },
});

function rowsOf({ ok, clients, unallowed, faults, flat }) {
  const row = { system: 'nestjs-cluster', ours: true };
  const made = Object.fromEntries(faults.map(({ name, count }) => [name, count]));
  const failures = [...new Set(unallowed.map(({ client, what }) => `${client}: ${what}`))];
  const all = Object.values(clients);
  const holds = (when) => {
    const of = (wanted) => flat.find(({ name }) => name === wanted)?.[when];
    return {
      frontRssBytes: of('residentBytes'),
      frontHeapBytes: of('heapBytes'),
      frontDescriptors: of('descriptors'),
    };
  };
  const group = 'What the primary holds';
  return [
    {
      ...row,
      group: 'Requests',
      label: ok ? 'all clients' : ['did not hold', ...failures].join('; '),
      asked: sum(all.map(({ success, lost }) => success + lost)),
      lost: sum(all.map(({ lost }) => lost)),
      lostOtherwise: unallowed.length,
      kills: made.kill,
      reloads: made.reload,
    },
    { ...row, group, label: 'second third', ...holds('early') },
    { ...row, group, label: 'last third', ...holds('late') },
  ];
}
