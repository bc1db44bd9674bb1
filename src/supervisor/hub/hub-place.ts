import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import {
  claimDirectory,
  MAX_PATH_BYTES,
  ownDirectory,
} from '../../contract/files/control-address.js';

/** The place of a hub's socket. Only this user can enter the directory. */
export interface HubPlace {
  readonly directory: string;
  readonly path: string;
  /** Whether the directory belongs to this hub alone, and is removed when the hub ends. */
  readonly temporary: boolean;
}

/**
 * Finds a place next to the control socket, or in a new directory that only this user can enter.
 *
 * @throws Error if no directory can be made, or if its path is too long for a socket.
 */
export function findHubPlace(file: string): HubPlace {
  try {
    // Absolute even if TMPDIR is relative, because a worker may have another working directory.
    const directory = resolve(ownDirectory());
    const path = join(directory, file);
    refuseLong(path);
    claimDirectory(directory);
    return { directory, path, temporary: false };
  } catch {
    const beginning = resolve(tmpdir(), TEMPORARY);
    refuseLong(join(`${beginning}XXXXXX`, file));
    try {
      const directory = mkdtempSync(beginning);
      return { directory, path: join(directory, file), temporary: true };
    } catch (error) {
      throw new Error(
        `no directory can be made in ${tmpdir()} (${(error as NodeJS.ErrnoException).code}); set XDG_RUNTIME_DIR or TMPDIR to a directory that can be written`,
      );
    }
  }
}

const TEMPORARY = 'nestjs-cluster-hub-';

/** Workers' sockets are in the same directory. Their names are this many bytes longer than the hub's. */
const OWNER_BYTES = 14;

/** Refuses a path that is too long: a socket could be made there, but nobody could connect to it. */
function refuseLong(path: string): void {
  const bytes = Buffer.byteLength(path) + OWNER_BYTES;
  if (bytes <= MAX_PATH_BYTES) return;
  // The message leaves out the path. With its random part, each failure would be logged as a new failure.
  throw new Error(
    `a path in ${tmpdir()} is too long for a unix socket (${bytes} bytes, at most ${MAX_PATH_BYTES}); set XDG_RUNTIME_DIR or TMPDIR to a shorter directory`,
  );
}
