// Runs h2spec on an app with HTTP/2: on plain Nest, and in a cluster. A case that fails on both is not a
// defect of this package.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Cluster, startPlain } from '../cluster.mjs';
import { goProgram, INSTALLED } from '../install.mjs';
import { Verdict } from '../verdict.mjs';

const h2spec = goProgram('h2spec', 'github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible');
const program = join(import.meta.dirname, 'app.mjs');

/** @returns what is wrong, or `undefined`, by the name of each case. */
function check(port) {
  const report = join(INSTALLED, 'h2spec', `${port}.xml`);
  const args = ['--port', port, '--junit-report', report, '--strict', '--timeout', '1'];
  const { stderr } = spawnSync(h2spec, args, { encoding: 'utf8' });
  const cases = /<testcase package="([^"]*)" classname="([^"]*)"[^>]*>([\s\S]*?)<\/testcase>/g;
  const results = new Map();
  for (const [, part, title, inner] of readFileSync(report, 'utf8').matchAll(cases)) {
    const name = `${part} ${title}`;
    const isFirst = !results.has(name);
    const problem = /<(?:failure|error|skipped)/.test(inner) ? inner.trim() : undefined;
    results.set(isFirst ? name : `${name} (again)`, problem);
  }
  if (results.size === 0) throw new Error(stderr);
  return results;
}

const plain = await startPlain(program);
const reference = check(plain.port);
plain.stop();

const cluster = await Cluster.start({ program });
const results = check(new URL(cluster.url).port);
const failing = [...reference].filter(([, problem]) => problem !== undefined);
const verdict = new Verdict(
  Object.fromEntries(failing.map(([name]) => [name, 'it fails on plain Nest too'])),
);
for (const [name, problem] of results) verdict.add(name, problem);
await verdict.addEnd(cluster);
verdict.end();
