import { ClusterConfigurationError } from '../../errors/index.js';

/** The optional package that each group of options needs. */
const PEERS = { health: '@nestjs/terminus', metrics: 'prom-client' } as const;

/** Whether the package of a group is installed. If not, it may be a part of a bundle: see {@link loadPeer}. */
export function isInstalled(group: keyof typeof PEERS): boolean {
  const { resolve } = import.meta as Partial<ImportMeta>;
  try {
    return resolve?.(PEERS[group]) !== undefined; // CommonJS has no such function
  } catch {
    return false;
  }
}

/**
 * Loads the modules that a group of options needs.
 *
 * @throws ClusterConfigurationError if the package of the group is not installed.
 */
export async function loadPeer<T>(group: keyof typeof PEERS, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const name = PEERS[group];
    if (!isMissing(name, error)) throw error;
    const install = group === 'health' ? `${name} (with Nest 11: ${name}@11)` : name;
    throw new ClusterConfigurationError(
      `${group} of ClusterModule needs ${name}, which is not installed; run npm install ${install}, or set ${group}: false in forRoot()`,
    );
  }
}

/** Whether the error says that the package `name` itself, not one of its dependencies, is not installed. */
function isMissing(name: string, error: unknown): boolean {
  const { code, message } = error as NodeJS.ErrnoException;
  const isNotFound = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
  return isNotFound && message.includes(`'${name}'`);
}
