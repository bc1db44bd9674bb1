import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rolldown } from 'rolldown';

const ROOT = join(import.meta.dirname, '../..');

/**
 * Bundles the simulation and the core into one JavaScript module and passes its path to `use`.
 * Every Node runs this module, and faster than vitest would. It is removed afterwards.
 *
 * @param change the text to replace in a file of the core. Only the bundle is changed.
 */
export async function withSimulation(use, change) {
  const code = await bundle(change);
  const directory = mkdtempSync(join(tmpdir(), 'simulation-'));
  const file = join(directory, 'simulation.mjs');
  try {
    writeFileSync(file, code);
    return await use(file);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

async function bundle(change) {
  let changed = change === undefined;
  const build = await rolldown({
    input: join(ROOT, 'test/simulation/simulation.ts'),
    platform: 'node',
    cwd: ROOT,
    plugins: [
      {
        name: 'change',
        transform(code, id) {
          if (change === undefined || id !== join(ROOT, change.file)) return undefined;
          changed = true;
          return replaceOnce(code, change);
        },
      },
    ],
  });
  try {
    const { output } = await build.generate({ format: 'esm', codeSplitting: false });
    if (!changed) throw new Error(`${change.file}: the simulation does not use it`);
    return output[0].code;
  } finally {
    await build.close();
  }
}

/** @throws Error unless the code contains `find` exactly once. */
export function replaceOnce(code, { file, find, replace }) {
  const places = code.split(find).length - 1;
  if (places === 1) return code.replace(find, () => replace);
  throw new Error(`${file}: ${JSON.stringify(find)} is there ${places} times, not once`);
}
