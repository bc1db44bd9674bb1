import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const directory = join(import.meta.dirname, '../../packages');

/**
 * The names of the folders in `packages/`. The root is built and tested without that folder too.
 *
 * @type {readonly string[]}
 */
export const PACKAGES_BESIDE = existsSync(directory) ? readdirSync(directory) : [];

/**
 * @param {string} path
 * @returns whether a path from the root leads into `packages/`, and that folder is not there.
 */
export function isOfMissingPackage(path) {
  return PACKAGES_BESIDE.length === 0 && path.startsWith('packages/');
}
