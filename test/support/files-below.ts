import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Each file below a directory, with what changes when it is written. */
export function filesBelow(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .map((path) => {
      const { size, mtimeMs } = statSync(join(directory, path));
      return `${path} ${size} ${mtimeMs}`;
    })
    .toSorted();
}
