import { ClusterConfigurationError } from '../errors/index.js';

/** Groups of options that rest on a package which need not be installed without them. */
const PEERS = { health: '@nestjs/terminus', metrics: 'prom-client' } as const;

/**
 * Loads what a group of options needs.
 *
 * @throws ClusterConfigurationError where its package is not installed.
 */
export async function loadPeer<T>(group: keyof typeof PEERS, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const name = PEERS[group];
    // What such a package itself misses is not ours to explain.
    const isMissing =
      (code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND') &&
      message.includes(`'${name}'`);
    if (!isMissing) throw error;
    throw new ClusterConfigurationError(
      `${group} of ClusterModule needs ${name}, which is not installed; run npm install ${name}, or set ${group}: false in forRoot()`,
    );
  }
}
