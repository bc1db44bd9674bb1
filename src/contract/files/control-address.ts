import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  type Stats,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, isAbsolute, join } from 'node:path';

/** Maximum length of a socket path: the size of `sun_path` in sockaddr_un without the closing NUL. */
export const MAX_PATH_BYTES = process.platform === 'linux' ? 107 : 103;

const MAX_NAME_LENGTH = 40;

const OTHERS = 0o077;
const WRITABLE_BY_OTHERS = 0o022;
const STICKY = 0o1000;

/** The directory for new sockets and for the compile cache. It need not exist. */
export function ownDirectory({ XDG_RUNTIME_DIR }: NodeJS.ProcessEnv = process.env): string {
  // After `su` or `sudo`, the variable may name a directory of another user.
  if (XDG_RUNTIME_DIR === undefined || !isAbsolute(XDG_RUNTIME_DIR) || !isOwn(XDG_RUNTIME_DIR)) {
    return ownTemporaryDirectory();
  }
  return join(XDG_RUNTIME_DIR, 'nestjs-cluster');
}

/** This user's directory in the system's temporary directory. It need not exist. */
export function ownTemporaryDirectory(): string {
  return join(tmpdir(), `nestjs-cluster-${ownUid()}`);
}

/** The default path of a new cluster's control socket. The directory need not exist. */
export function defaultSocketPath(name: string, pid: number, env?: NodeJS.ProcessEnv): string {
  const directory = ownDirectory(env);
  const end = `.${pid}.sock`;
  const room = MAX_PATH_BYTES - Buffer.byteLength(directory) - 1 - end.length;
  return join(directory, `${name.slice(0, Math.max(1, room))}${end}`);
}

/**
 * The name in the nearest package.json above a program, or else the name of the program's
 * directory. pm2 runs the app from a script of pm2, and sets `pm_exec_path` to the app's script.
 */
export function appName(script: string): string {
  const isOfPm2 = /\bProcessContainer\w*\.js$/.test(script);
  const main = (isOfPm2 && process.env['pm_exec_path']) || script;
  const directory = dirname(existsSync(main) ? realpathSync(main) : main);
  return packageName(directory) ?? (cleanName(basename(directory)) || 'app');
}

/** The name in the nearest package.json that has one, in this directory or above it. */
export function packageName(directory: string): string | undefined {
  const parent = dirname(directory);
  const name = nameIn(join(directory, 'package.json'));
  return name ?? (parent === directory ? undefined : packageName(parent));
}

function nameIn(file: string): string | undefined {
  try {
    const { name } = JSON.parse(readFileSync(file, 'utf8')) as { readonly name?: unknown };
    return (typeof name === 'string' && cleanName(name)) || undefined;
  } catch {
    return undefined; // the file is missing or cannot be read
  }
}

/** Makes a name safe for a path, a log line and a terminal: `@acme/shop` becomes `acme-shop`. */
export function cleanName(name: string): string {
  return name
    .replaceAll(/[^\w.-]+/g, '-')
    .replace(/^[-.]+/, '')
    .slice(0, MAX_NAME_LENGTH);
}

/**
 * Creates a directory that only this user can access and replace, or checks that an existing
 * directory is as safe.
 *
 * @throws Error if the directory cannot be created, can be accessed or replaced by another user, or
 *   is a link or a file.
 */
export function claimDirectory(directory: string): void {
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const problem = problemOfDirectory(lstatSync(directory));
  if (problem !== undefined) throw new Error(`${directory} ${problem}`);
  refuseSwappable(dirname(directory));
}

/** Why a directory is not safe for this user's sockets; `undefined` if it is safe. */
export function problemOfDirectory(stats: Stats, uid: number = ownUid()): string | undefined {
  if (!stats.isDirectory()) return 'is a link or a file, not a directory; remove it';
  if (stats.uid !== uid) return `belongs to another user (uid ${stats.uid}); remove it`;
  if ((stats.mode & OTHERS) !== 0) return 'is open to other users; chmod 700 it';
  return undefined;
}

/** @throws Error if another user could replace the files of a directory. */
export function refuseSwappable(directory: string): void {
  const { uid, mode } = statSync(directory);
  if (uid !== ownUid() && uid !== 0) {
    throw new Error(`${directory} belongs to another user (uid ${uid}); use another path`);
  }
  if ((mode & WRITABLE_BY_OTHERS) !== 0 && (mode & STICKY) === 0) {
    throw new Error(`${directory} is writable by other users; chmod go-w it, or use another path`);
  }
}

/** Numeric id of this user; -1 on Windows, where users have no numeric id. */
export function ownUid(): number {
  return process.geteuid?.() ?? -1;
}

function isOwn(directory: string): boolean {
  const stats = lstatSync(directory, { throwIfNoEntry: false });
  return stats?.isDirectory() === true && stats.uid === ownUid();
}
