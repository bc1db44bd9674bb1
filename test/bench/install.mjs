// Installs the packages that only the benchmark needs, or only the project in the folder that the
// argument names, if they are missing or differ from the lock file. The scripts `prebench` and
// `presite` call this each time, so npm is not run if all are there.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const [, , FOLDER = import.meta.dirname] = process.argv;

if (!isInstalled()) {
  console.error(`installing packages: npm ci --prefix ${FOLDER}`);
  const options = ['--no-audit', '--no-fund', '--loglevel=error'];
  const { status } = spawnSync('npm', ['ci', '--prefix', FOLDER, ...options], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  process.exitCode = status ?? 1;
}

/** npm notes what it has installed. Optional packages may be for other platforms. */
function isInstalled() {
  const wanted = packagesOf('package-lock.json');
  const found = packagesOf('node_modules/.package-lock.json');
  if (found === undefined) return false;
  return (
    Object.entries(wanted).every(
      ([name, { version, optional }]) =>
        name === '' || found[name]?.version === version || (optional && !(name in found)),
    ) && Object.keys(found).every((name) => name in wanted)
  );
}

function packagesOf(file) {
  try {
    return JSON.parse(readFileSync(join(FOLDER, file), 'utf8')).packages;
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}
