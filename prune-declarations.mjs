// Removes the declarations in dist that no entry of the package leads to. The compiler writes one
// for each file, but a user's compiler reads only the declarations of the public names.
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

const { exports } = JSON.parse(readFileSync('package.json', 'utf8'));
const reached = new Set();

function reach(file) {
  if (reached.has(file)) return;
  reached.add(file);
  const source = readFileSync(file, 'utf8').replaceAll(/\/\*.*?\*\//gs, '');
  for (const [, specifier] of source.matchAll(/(?:from|import)\s*\(?\s*['"](\.[^'"]+)['"]/g)) {
    reach(resolve(dirname(file), specifier.replace(/\.(c|m)?js$/, '.d.$1ts')));
  }
}

for (const entry of Object.values(exports)) {
  if (typeof entry !== 'object') continue;
  reach(resolve(entry.default.types));
  if (entry.require) reach(resolve(entry.require.types));
}
for (const path of readdirSync('dist', { recursive: true })) {
  const file = resolve('dist', path);
  if (/\.d\.(c|m)?ts$/.test(file) && !reached.has(file)) rmSync(join('dist', path));
}
