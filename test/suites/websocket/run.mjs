// Runs the cases of the Autobahn test suite on a gateway on ws: on plain Nest, in a cluster, and in a cluster
// during a reload. The Autobahn suite itself needs Python 2, so kosoku runs its cases.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Cluster, startPlain } from '../cluster.mjs';
import { INSTALLED, pythonPackages } from '../install.mjs';
import { Verdict } from '../verdict.mjs';

const kosoku = join(pythonPackages('websocket', ['kosoku==0.1.0']), 'kosoku');
const program = join(import.meta.dirname, 'app.mjs');
const reports = join(INSTALLED, 'websocket/reports');
/** Large messages, and compression: they measure ws, and take minutes. */
const LEFT_OUT = ['9.*', '12.*', '13.*'];

/**
 * Runs all cases, or only some. kosoku waits half a second for an answer and then drops its connection.
 * On a machine that other programs use, an answer may take longer, so such a case runs again.
 *
 * @returns the result of each case.
 */
async function check(port, only = []) {
  const chosen = only.flatMap((name) => ['-i', name]);
  const excluded = LEFT_OUT.flatMap((each) => ['-x', each]);
  const args = ['-m', 'fuzzingclient', '-p', '4', '-o', reports, `ws://127.0.0.1:${port}`];
  const child = spawn(kosoku, [...(only.length > 0 ? chosen : excluded), ...args], {
    stdio: 'ignore',
  });
  await once(child, 'exit');
  const read = (name) => JSON.parse(readFileSync(join(reports, name), 'utf8'));
  const results = Object.entries(Object.values(read('index.json'))[0]);
  const late = results.filter(
    ([, result]) => !isGood(result) && read(result.reportfile).droppedByMe === true,
  );
  if (only.length > 0 || late.length === 0) return results;
  const names = late.map(([name]) => name);
  const again = new Map(await check(port, names));
  return results.map(([name, result]) => [name, again.get(name) ?? result]);
}

const isGood = ({ behavior, behaviorClose }) =>
  ['OK', 'NON-STRICT', 'INFORMATIONAL'].includes(behavior) &&
  ['OK', 'INFORMATIONAL'].includes(behaviorClose);
const problemOf = (result) => (isGood(result) ? undefined : JSON.stringify(result));

const plain = await startPlain(program);
const reference = await check(plain.port);
plain.stop();

const failing = reference.filter(([, result]) => !isGood(result));
const verdict = new Verdict(
  Object.fromEntries(failing.map(([name]) => [`case ${name}`, 'it fails on plain Nest too'])),
);
const cluster = await Cluster.start({ program, options: {} });
const { port: shared } = new URL(cluster.url);
for (const [name, result] of await check(shared)) verdict.add(`case ${name}`, problemOf(result));

let closed = 0;
let ending = false;
cluster.child.kill('SIGHUP');
for (let again = 0; again < 2; again += cluster.event('reload-ended') ? 1 : 0) {
  const results = await check(shared);
  const names = new Set(failing.map(([name]) => name));
  for (const [name, result] of results.filter(([name]) => !names.has(name))) {
    // A worker that is replaced closes its connections with 1001: the client then connects again.
    const isReplaced = !isGood(result) && !ending && result.remoteCloseCode === 1001;
    if (isReplaced) closed += 1;
    verdict.add(`case ${name} through a reload`, isReplaced ? undefined : problemOf(result));
  }
  ending ||= cluster.event('reload-ended') !== undefined;
}
await verdict.addEnd(cluster);
console.log(`the reload closed ${closed} connections with 1001`);
verdict.end();
