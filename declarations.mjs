// Writes the declarations of each package into its dist, and removes the declarations that no entry
// leads to. The compiler writes one for each file, but a user's compiler reads only the public names.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';

const compiler = createRequire(import.meta.url).resolve('typescript/bin/tsc');

/** In the order in which they need each other. */
const PACKAGES = ['.', 'packages/shared', 'packages/socket.io', 'packages/bullmq'];

for (const directory of PACKAGES.filter(existsSync).map((each) => resolve(each))) {
  process.chdir(directory);
  execFileSync(process.execPath, [compiler, '-p', 'src'], { stdio: 'inherit' });
  prune();
}

/** Works on the package in the working directory. */
function prune() {
  const { exports } = JSON.parse(readFileSync('package.json', 'utf8'));
  const reached = new Set();
  const reach = (file) => {
    if (reached.has(file)) return;
    reached.add(file);
    const source = readFileSync(file, 'utf8').replaceAll(/\/\*.*?\*\//gs, '');
    for (const [, specifier] of source.matchAll(/(?:from|import)\s*\(?\s*['"](\.[^'"]+)['"]/g)) {
      reach(resolve(dirname(file), specifier.replace(/\.(c|m)?js$/, '.d.$1ts')));
    }
  };
  for (const entry of Object.values(exports)) {
    if (typeof entry !== 'object') continue;
    reach(resolve(entry.default.types));
    if (entry.require) reach(resolve(entry.require.types));
  }
  for (const path of readdirSync('dist', { recursive: true })) {
    const file = resolve('dist', path);
    if (/\.d\.(c|m)?ts$/.test(file) && !reached.has(file)) rmSync(join('dist', path));
  }
}
