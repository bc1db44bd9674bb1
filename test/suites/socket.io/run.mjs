// Runs the tests of @socket.io/cluster-adapter, of the cluster adapter in socket.io-adapter, and of Socket.IO
// itself, as far as they use an adapter, on ClusterIoAdapter.
// They are in no npm package. Options: --from DIR, the path of a copy of github.com/socketio/socket.io.
import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { folderOfRepository, npmPackages } from '../install.mjs';
import { Verdict } from '../verdict.mjs';

const { values: options } = parseArgs({ options: { from: { type: 'string' } } });
const here = import.meta.dirname;
const address = 'https://github.com/socketio/socket.io.git';
const tools = npmPackages('socket.io', [
  'mocha@12.0.3',
  'tsx@4.23.15',
  'expect.js@0.3.1',
  'supertest@7.3.2',
  'superagent@10.4.2',
]);
const quoted = (path) => JSON.stringify(join(here, path));

const SAME_TICK =
  'it expects the effect in the tick of the call; an adapter for several servers first tells the others';
const KNOWN = {
  'cluster adapter socketsJoin makes the given socket instance join the specified room': SAME_TICK,
  'cluster adapter socketsLeave makes the given socket instance leave the specified room':
    SAME_TICK,
  'utility methods socketsJoin makes all socket instances join the given room': SAME_TICK,
  'utility methods socketsJoin makes all socket instances in a room join the given room': SAME_TICK,
  'utility methods socketsLeave makes all socket instances leave the given room': SAME_TICK,
  'utility methods socketsLeave makes all socket instances in a room leave the given room':
    SAME_TICK,
};

/** Copies the tests of a package, as of a tag, with the changes that put our adapter in their place. */
function testsOf(name, tag, changes) {
  const path = `packages/${name}/test`;
  const source = folderOfRepository(`${name}-tests`, { address, tag, path, from: options.from });
  const tests = join(tools, name, 'test');
  cpSync(source, tests, { recursive: true });
  for (const [file, from, to] of changes) {
    const text = readFileSync(join(tests, file), 'utf8');
    const changed = text.replace(from, to);
    if (changed === text) throw new Error(`${file} of ${name} ${tag} has no ${from}`);
    writeFileSync(join(tests, file), changed);
  }
  return tests;
}

const verdict = new Verdict(KNOWN);
function run(tests, ...files) {
  const report = join(tools, 'report.json');
  rmSync(report, { force: true });
  const args = [
    '--import=tsx',
    '--require',
    join(here, 'servers.cjs'),
    '--exit',
    '--retries', // some cases race with the workers of their own
    '2',
    '--timeout',
    '60000',
    '--reporter',
    'json',
    '--reporter-option',
    `output=${report}`,
    ...files.map((file) => join(tests, file)),
  ];
  const mocha = spawnSync(join(tools, 'node_modules/.bin/mocha'), args, {
    encoding: 'utf8',
    cwd: tools,
    env: { ...process.env, SUITE_WORKER: join(tests, 'worker.js') },
  });
  try {
    verdict.addMocha(JSON.parse(readFileSync(report, 'utf8')));
  } catch {
    verdict.add(`the run of ${tests}`, mocha.stdout + mocha.stderr);
  }
}

run(
  testsOf('socket.io-adapter', 'socket.io-adapter@2.5.8', [
    // A message passes through the hub, so its effect comes later than in the same tick.
    ['util.ts', 'process.nextTick(resolve)', 'setTimeout(resolve, 50)'],
    [
      'cluster-adapter.ts',
      'import { EventEmitter } from "events";',
      `import { EventEmitter } from "events"; import { serverOf } from ${quoted('servers.cjs')};`,
    ],
    [
      'cluster-adapter.ts',
      'const io = new Server(httpServer);',
      'const io = serverOf(httpServer);',
    ],
    ['cluster-adapter.ts', /io\.adapter\(function[\s\S]*?\n {6}\}\);/, ''],
    [
      'cluster-adapter.ts',
      /import \{\s+ClusterAdapterWithHeartbeat[\s\S]*?"..\/lib";/,
      'import { ClusterAdapterWithHeartbeat, type ClusterMessage, type ClusterResponse } from "socket.io-adapter";',
    ],
  ]),
  'cluster-adapter.ts',
);
run(
  testsOf('socket.io-cluster-adapter', '@socket.io/cluster-adapter@0.3.0', [
    ['index.ts', '} from "..";', `} from ${quoted('shim.cjs')};`],
    ['index.ts', 'from "node:cluster";', `from ${quoted('shim.cjs')};`],
  ]),
  'index.ts',
);
const OWN = [
  'namespaces',
  'socket',
  'messaging-many',
  'middleware',
  'socket-middleware',
  'socket-timeout',
  'utility-methods',
];
run(
  testsOf(
    'socket.io',
    'socket.io@4.8.3',
    OWN.map((name) => [`${name}.ts`, 'from ".."', `from ${quoted('servers.cjs')}`]),
  ),
  ...OWN.map((name) => `${name}.ts`),
);
verdict.end();
