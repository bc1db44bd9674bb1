import { ClusterConfigurationError } from '../../errors/index.js';

/** Groups of options that need an optional package. */
const PEERS = { health: '@nestjs/terminus', metrics: 'prom-client' } as const;

/**
 * Loads the modules that a group of options needs.
 *
 * @throws ClusterConfigurationError where its package is not installed.
 */
export async function loadPeer<T>(group: keyof typeof PEERS, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const name = PEERS[group];
    if (!isMissing(name, error)) throw error;
    throw new ClusterConfigurationError(
      `${group} of ClusterModule needs ${name}, which is not installed; run npm install ${name}, or set ${group}: false in forRoot()`,
    );
  }
}

/** Whether an imported package is not installed. A package that this package cannot find itself does not count. */
export function isMissing(name: string, error: unknown): boolean {
  const { code, message } = error as NodeJS.ErrnoException;
  const isNotFound = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
  return isNotFound && message.includes(`'${name}'`);
}
