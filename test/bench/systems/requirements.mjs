import { accessSync, constants, existsSync } from 'node:fs';
import path from 'node:path';

/** Why `reusePort` cannot be used with a Node; undefined where it can. */
export function lacksReusePort(nodeVersion) {
  if (process.platform !== 'linux') return 'reusePort needs Linux';
  if (isBefore(nodeVersion, [22, 12])) {
    return `reusePort needs Node 22.12 or later, this is ${nodeVersion}`;
  }
  return undefined;
}

/** Whether a version such as '20.20.2' comes before [major, minor]. */
export function isBefore(version, [major, minor]) {
  const [ownMajor, ownMinor] = version.replace(/^v/, '').split('.').map(Number);
  return ownMajor < major || (ownMajor === major && ownMinor < minor);
}

/** Whether a program is installed. Looks in the `sbin` folders too, which PATH may not contain. */
export function hasProgram(name) {
  return [...process.env.PATH.split(':'), '/usr/sbin', '/sbin'].some((folder) => {
    try {
      accessSync(path.join(folder, name), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Why a package of the benchmark cannot be used; undefined if it can. */
export function lacksPackage(name) {
  if (existsSync(new URL(`../node_modules/${name}/package.json`, import.meta.url)))
    return undefined;
  return `${name} is missing: npm ci --prefix test/bench`;
}
