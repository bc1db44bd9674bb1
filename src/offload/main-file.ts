import { realpathSync } from 'node:fs';
import { createRequire } from 'node:module';

/** What Node was started with, by the path that imports of it have. */
export function mainFile(): string | undefined {
  try {
    // `node dist/main` and `node dist` leave the rest to Node.
    return realpathSync(createRequire(import.meta.url).resolve(process.argv[1]!));
  } catch {
    return undefined; // a program from standard input, or `node --eval`
  }
}
