import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import {
  claimDirectory,
  defaultSocketPath,
  MAX_PATH_BYTES,
} from '../../control/control-address.js';

/** Where the socket of a hub lies: nobody but this user can enter the directory. */
export interface HubPlace {
  readonly directory: string;
  readonly path: string;
  /** The directory is of this hub alone, and goes with it. */
  readonly temporary: boolean;
}

/**
 * Beside the control socket; where that cannot be, in a new directory of this user's own.
 *
 * @throws Error where there is none, or its path is too long for a socket.
 */
export function findHubPlace(file: string): HubPlace {
  try {
    const directory = dirname(defaultSocketPath('hub', process.pid));
    const path = join(directory, file);
    refuseLong(path);
    claimDirectory(directory);
    return { directory, path, temporary: false };
  } catch {
    const directory = mkdtempSync(join(tmpdir(), 'nestjs-cluster-hub-'));
    const path = join(directory, file);
    try {
      refuseLong(path);
    } catch (error) {
      rmSync(directory, { recursive: true, force: true });
      throw error;
    }
    return { directory, path, temporary: true };
  }
}

/** Sockets of workers lie beside it, with names that are longer by this. */
const OWNER_BYTES = 14;

/** A longer one can be made and renamed, but nobody could connect to it. */
function refuseLong(path: string): void {
  const bytes = Buffer.byteLength(path) + OWNER_BYTES;
  if (bytes <= MAX_PATH_BYTES) return;
  throw new Error(
    `the path ${path} is too long for a unix socket (${bytes} bytes, at most ${MAX_PATH_BYTES}); set TMPDIR to a shorter directory`,
  );
}
