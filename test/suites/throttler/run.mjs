// Runs the tests of @nest-lab/throttler-storage-redis on ClusterThrottlerStorage, in one process and in
// three workers. They are in no npm package. Options: --from DIR, a copy of github.com/jmcdo29/nest-lab.

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { folderOfRepository, INSTALLED, vitest } from '../install.mjs';
import { Verdict } from '../verdict.mjs';
import ts from 'typescript';

const { values: options } = parseArgs({ options: { from: { type: 'string' } } });
const here = import.meta.dirname;
const source = folderOfRepository('throttler-tests', {
  address: 'https://github.com/jmcdo29/nest-lab.git',
  tag: '@nest-lab/throttler-storage-redis@1.2.0',
  path: 'packages/throttler-storage-redis/test',
  from: options.from,
});
const suite = join(INSTALLED, 'throttler');

/** Compiles a test file, because Nest needs the types of constructor parameters. */
function compile(file, module, changes = []) {
  let text = readFileSync(join(source, file), 'utf8');
  for (const [from, to] of changes) {
    if (!text.includes(from)) throw new Error(`${file} has no ${from}`);
    text = text.replaceAll(from, to);
  }
  const compilerOptions = {
    module: ts.ModuleKind[module],
    target: ts.ScriptTarget.ES2022,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
    esModuleInterop: true,
  };
  const { outputText } = ts.transpileModule(text, { compilerOptions });
  const to = join(suite, 'test', file.replace(/ts$/, module === 'ES2022' ? 'mjs' : 'js'));
  mkdirSync(dirname(to), { recursive: true });
  writeFileSync(to, outputText);
}

rmSync(suite, { recursive: true, force: true });
mkdirSync(suite, { recursive: true });
writeFileSync(join(suite, 'package.json'), '{"type":"commonjs"}');
const shim = JSON.stringify(join(here, 'shim.mjs'));
for (const file of readdirSync(source, { recursive: true })) {
  if (!file.startsWith('app/') || !/\.(controller|service|module)\.ts$/.test(file)) continue;
  const uses = file.endsWith('controller.module.ts');
  compile(file, 'CommonJS', uses ? [["'../../../src'", shim]] : []);
}
for (const file of ['utility/redis', 'utility/redis-cluster']) {
  mkdirSync(join(suite, 'test/utility'), { recursive: true });
  writeFileSync(join(suite, `test/${file}.js`), `module.exports = require(${shim});`);
}
// A connection for each request, because the app passes connections to its workers in turn.
compile('utility/httpromise.ts', 'CommonJS', [['request(url,', 'request(url, { agent: false },']]);
compile('controller.spec.ts', 'ES2022', [
  ["'@nestjs/testing'", shim],
  ['await flushdb(redisOrCluster);', 'current.name = redisOrCluster.name;'],
  ['import Redis,', `import { current } from ${shim};\nimport Redis,`],
]);
const verdict = new Verdict();
verdict.addVitest(vitest(here, { SUITE: suite }));
verdict.end();
