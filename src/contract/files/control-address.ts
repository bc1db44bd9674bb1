import { lstatSync, mkdirSync, type Stats, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, isAbsolute, join } from 'node:path';

/** Maximum length of a socket path: the size of `sun_path` in sockaddr_un without the closing NUL. */
export const MAX_PATH_BYTES = process.platform === 'linux' ? 107 : 103;

const SUFFIX = '.sock';
const MAX_NAME_LENGTH = 40;

const OTHERS = 0o077;
const WRITABLE_BY_GROUP = 0o020;
const WRITABLE_BY_ALL = 0o002;
const STICKY = 0o1000;

/** Directories in which clusters of this user may have their sockets. A new socket goes into the first suitable directory. */
export function controlDirectories(env: NodeJS.ProcessEnv = process.env): readonly string[] {
  const runtime = env['XDG_RUNTIME_DIR'];
  return [
    ...(runtime !== undefined && isAbsolute(runtime) ? [join(runtime, 'nestjs-cluster')] : []),
    ownTemporaryDirectory(),
  ];
}

/** The directory of this user in the system's temporary directory. It need not exist. */
export function ownTemporaryDirectory(): string {
  return join(tmpdir(), `nestjs-cluster-${ownUid()}`);
}

/** The directory for new sockets and for the compile cache. It need not exist. */
export function ownDirectory(env?: NodeJS.ProcessEnv): string {
  const directories = controlDirectories(env);
  // Skips directories of other users. After `su` or `sudo`, `XDG_RUNTIME_DIR` may name such a directory.
  return directories.find((each) => isOwn(dirname(each))) ?? directories.at(-1)!;
}

/** The default path of a new cluster's control socket. The directory need not exist. */
export function defaultSocketPath(name: string, pid: number, env?: NodeJS.ProcessEnv): string {
  const directory = ownDirectory(env);
  const end = `.${pid}${SUFFIX}`;
  const room = MAX_PATH_BYTES - Buffer.byteLength(directory) - 1 - end.length;
  return join(directory, `${name.slice(0, Math.max(1, room))}${end}`);
}

/** Parses the file name of a socket that {@link defaultSocketPath} named. */
export function parseSocketName(
  path: string,
): { readonly name: string; readonly pid: number } | undefined {
  const [, name, pid] = /^([\w.-]+)\.(\d{1,10})\.sock$/.exec(basename(path)) ?? [];
  return name === undefined ? undefined : { name, pid: Number(pid) };
}

/** Makes a name safe for a path, a log line and a terminal: `@acme/shop` becomes `acme-shop`. */
export function cleanName(name: string): string {
  return name
    .replaceAll(/[^\w.-]+/g, '-')
    .replace(/^[-.]+/, '')
    .slice(0, MAX_NAME_LENGTH);
}

/**
 * Creates a directory for sockets that only this user can access.
 *
 * @throws Error as {@link makeOwnDirectory}, or if another user can replace the directory.
 */
export function claimDirectory(directory: string): void {
  makeOwnDirectory(directory);
  refuseSwappable(dirname(directory));
}

/**
 * Creates a directory that only this user can access. If the directory exists, checks that only
 * this user can access it.
 *
 * @throws Error if the directory cannot be created, can be accessed by another user, or is a link or
 * a file.
 */
export function makeOwnDirectory(directory: string): void {
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const problem = problemOfDirectory(lstatSync(directory));
  if (problem !== undefined) throw new Error(`${directory} ${problem}`);
}

/** Why a directory is not safe for sockets of this user; `undefined` if it is safe. */
export function problemOfDirectory(stats: Stats, uid: number = ownUid()): string | undefined {
  if (!stats.isDirectory()) return 'is not a directory (a link or a file); remove it';
  if (stats.uid !== uid) return `belongs to another user (uid ${stats.uid}); remove it`;
  if ((stats.mode & OTHERS) !== 0) return 'is open to other users; chmod 700 it';
  return undefined;
}

/** @throws Error if another user could replace the files of a directory. */
export function refuseSwappable(directory: string): void {
  const { uid, mode } = statSync(directory);
  if (uid !== ownUid() && uid !== 0) {
    throw new Error(`${directory} belongs to another user (uid ${uid})`);
  }
  if ((mode & STICKY) !== 0) return;
  if ((mode & WRITABLE_BY_ALL) !== 0) throw new Error(`${directory} is writable by everybody`);
  if ((mode & WRITABLE_BY_GROUP) !== 0) {
    throw new Error(`${directory} is writable by its group; chmod g-w it, or give another path`);
  }
}

/** Numeric id of this user; -1 on Windows, where users have no numeric id. */
export function ownUid(): number {
  return process.geteuid?.() ?? -1;
}

function isOwn(directory: string): boolean {
  try {
    const stats = lstatSync(directory);
    return stats.isDirectory() && stats.uid === ownUid();
  } catch {
    return false;
  }
}
