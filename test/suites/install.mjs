// Installs the suites of others into test/suites/installed, which git ignores. What is there in the
// same versions is not installed again.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

export const INSTALLED = join(import.meta.dirname, 'installed');

/** Runs a command. @returns its output. @throws Error with the output, if the command fails. */
export function run(command, args, options) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    ...options,
  });
  if (status === 0) return stdout;
  const why = error?.message ?? `exit code ${status}\n${stdout}${stderr}`;
  throw new Error(`${[command, ...args].join(' ')}: ${why}`);
}

/** @returns the folder of the suite, in which `install` has run for exactly these `versions`. */
function once(suite, versions, install) {
  const folder = join(INSTALLED, suite);
  const mark = join(folder, 'installed.txt');
  if (existsSync(mark) && readFileSync(mark, 'utf8') === versions) return folder;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  install(folder);
  writeFileSync(mark, versions);
  return folder;
}

/** Installs npm packages, each as `name@version`. @returns the folder that has `node_modules`. */
export function npmPackages(suite, packages) {
  return once(suite, packages.join(' '), (folder) => {
    writeFileSync(join(folder, 'package.json'), '{"private":true}');
    run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...packages], {
      cwd: folder,
    });
  });
}

/** Installs the program of a Go module. @returns the path of the program. */
export function goProgram(suite, source) {
  const folder = once(suite, source, (bin) => {
    run('go', ['install', source], { env: { ...process.env, GOBIN: bin } });
  });
  return join(folder, source.split('/').at(-1).split('@')[0]);
}

/**
 * Gets a folder of a repository as of a tag. `from` is the path of a copy of the repository, for
 * machines that do not reach `address`. @returns the path of the folder.
 */
export function folderOfRepository(suite, { address, tag, path, from }) {
  const root = once(suite, `${address} ${tag} ${path}`, (folder) => {
    if (from === undefined) {
      run('git', ['clone', '--quiet', '--depth', '1', '--branch', tag, address, folder]);
    } else {
      const files = run('git', ['-C', from, 'ls-tree', '-r', '--name-only', tag, path]);
      for (const file of files.trim().split('\n')) {
        const { status, stdout } = spawnSync('git', ['-C', from, 'show', `${tag}:${file}`]);
        mkdirSync(dirname(join(folder, file)), { recursive: true });
        // A copy may lack large files. A large string in JSON stands in for them.
        writeFileSync(
          join(folder, file),
          status === 0 ? stdout : JSON.stringify('-'.repeat(2 ** 20)),
        );
      }
    }
  });
  return join(root, path);
}

/** Runs the tests that `vitest.config.mjs` in `folder` includes. @returns the JSON report. */
export function vitest(folder, env) {
  const report = join(INSTALLED, `${basename(folder)}.json`);
  rmSync(report, { force: true });
  const program = join(folder, '../../../node_modules/vitest/vitest.mjs');
  const args = ['run', '--root', folder, '--config', join(folder, 'vitest.config.mjs')];
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [program, ...args, '--reporter', 'json', '--outputFile', report],
    { encoding: 'utf8', env: { ...process.env, ...env } },
  );
  if (!existsSync(report)) throw new Error(stdout + stderr);
  return JSON.parse(readFileSync(report, 'utf8'));
}
