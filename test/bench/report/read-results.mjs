import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { inOrder } from './scope-order.mjs';

/**
 * Every result in a directory, in the order of the report.
 *
 * @param {string} directory
 * @returns {import('./types.d.mts').Result[]}
 */
export function readResults(directory) {
  const files = readdirSync(directory).filter((name) => name.endsWith('.json'));
  return inOrder(files.map((name) => readResult(join(directory, name))));
}

function readResult(path) {
  let result;
  try {
    result = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new Error(`${path} cannot be read: ${error.message}`, { cause: error });
  }
  if (typeof result?.scope !== 'string' || !Array.isArray(result.rows)) {
    throw new Error(
      `${path} is no result of the benchmark (scope and rows are missing): remove it, or run it again`,
    );
  }
  if (result.forced) {
    throw new Error(`${path} was measured with --force, on a machine in use: remove it`);
  }
  return result;
}
