import { cpSync, existsSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { makeCodeCaches } from './code-cache.js';
import { NODE } from './cluster-process.js';
import { sensitiveNodes } from './installed-nodes.js';
import { installQuickPackages, OWN, QUICK_PACKAGES } from './quick-packages.js';

const root = join(import.meta.dirname, '../..');

/**
 * Tests run against the built package. The Nest 11 fixture gets a real copy of
 * it: through a link it would find the Nest of this repository. A copy of the sample app among the
 * fixtures finds their bundles.
 */
export default async function setup(): Promise<void> {
  if (!existsSync(join(root, 'dist/index.js'))) {
    throw new Error('dist/ is missing: run "npm run build" first (npm test does)');
  }
  const fixture = join(root, 'test/fixtures/nest-11');
  for (const { name, from } of OWN) {
    const copy = join(fixture, 'node_modules', name);
    rmSync(copy, { recursive: true, force: true });
    cpSync(join(from, 'dist'), join(copy, 'dist'), { recursive: true });
    cpSync(join(from, 'package.json'), join(copy, 'package.json'));
  }
  for (const program of ['app.mjs', 'no-http.mjs', 'behaviours/socket-io.mjs']) {
    cpSync(join(root, 'test/fixtures', program), join(fixture, basename(program)));
  }
  for (const part of ['dist', 'public', 'package.json']) {
    cpSync(join(root, 'sample-app', part), join(root, 'test/fixtures/sample-app', part), {
      recursive: true,
    });
  }
  await installQuickPackages();
  makeCodeCaches(QUICK_PACKAGES, [NODE, ...sensitiveNodes().values()]);
}
