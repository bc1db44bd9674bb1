// One runner for every measurement: npm run bench -- --scope overhead --json result.json
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import os from 'node:os';
import { parseArgs } from 'node:util';
import { balance } from './scopes/balance.mjs';
import { disconnects } from './scopes/disconnects.mjs';
import { instrumentation } from './scopes/instrumentation.mjs';
import { offload } from './scopes/offload.mjs';
import { offloadCost } from './scopes/offload-cost.mjs';
import { openLoop } from './scopes/open-loop.mjs';
import { overload } from './scopes/overload.mjs';
import { overhead } from './scopes/overhead.mjs';
import { recovery } from './scopes/recovery.mjs';
import { reload } from './scopes/reload.mjs';
import { reusePort } from './scopes/reuse-port.mjs';
import { scrape } from './scopes/scrape.mjs';
import { steady } from './scopes/steady.mjs';
import { strict } from './scopes/strict.mjs';

const SCOPES = {
  overhead,
  balance,
  recovery,
  'open-loop': openLoop,
  reload,
  'reuse-port': reusePort,
  steady,
  strict,
  offload,
  overload,
  'offload-cost': offloadCost,
  disconnects,
  scrape,
  instrumentation,
};

const { values } = parseArgs({
  options: {
    scope: { type: 'string', default: 'overhead' },
    adapter: { type: 'string', multiple: true, default: ['express', 'fastify'] },
    node: { type: 'string', default: process.execPath }, // path of the Node under test
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '5' },
    workers: { type: 'string', multiple: true, default: ['2', '1'] }, // of scope reload
    reloads: { type: 'string', default: '50' },
    requests: { type: 'string', default: '1000000' }, // of scope strict
    json: { type: 'string' },
  },
});
const scope = SCOPES[values.scope];
if (scope === undefined) {
  console.error(`no such scope: ${values.scope}; known are ${Object.keys(SCOPES).join(', ')}`);
  process.exit(2);
}

const results = await scope({
  node: values.node,
  adapters: values.adapter,
  seconds: Number(values.seconds),
  rounds: Number(values.rounds),
  workers: values.workers.map(Number),
  reloads: Number(values.reloads),
  requests: Number(values.requests),
  progress: (line) => console.error(line),
});
const machine = {
  node: execFileSync(values.node, ['--version'], { encoding: 'utf8' }).trim(),
  cores: os.availableParallelism(),
  kernel: os.release(),
};
console.table(results);
if (values.json) {
  const report = { scope: values.scope, machine, date: new Date().toISOString(), results };
  writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
}
