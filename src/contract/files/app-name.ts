import { readFileSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { cleanName } from './control-address.js';

/** The name in the nearest package.json above a program, or else the name of the program's directory. */
export function appName(script: string): string {
  const start = dirname(realPath(script));
  return packageName(start) ?? (cleanName(basename(start)) || 'app');
}

export function packageName(directory: string): string | undefined {
  const name = nameIn(join(directory, 'package.json'));
  const parent = dirname(directory);
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

function realPath(script: string): string {
  try {
    return realpathSync(script);
  } catch {
    return script;
  }
}

/** The app's script. pm2 runs it from a script of its own, and names it in `pm_exec_path`. */
export function mainScript(script: string): string {
  const isOfPm2 = /\bProcessContainer\w*\.js$/.test(script);
  return (isOfPm2 && process.env['pm_exec_path']) || script;
}
