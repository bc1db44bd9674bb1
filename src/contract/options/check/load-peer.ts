import { ClusterConfigurationError } from '../../errors/index.js';

/** The first words of an error about a missing package, of Node, @swc-node/register and Vitest. */
const NOT_FOUND = /^(?:Cannot find|Could not resolve) [^'"]*['"]([^'"]+)/;

/** @throws ClusterConfigurationError always */
export function refuse(group: string, needs: string): never {
  throw new ClusterConfigurationError(
    `${group} of ClusterModule needs ${needs}; or set ${group}: false in forRoot()`,
  );
}

/** @returns `undefined` if the package itself, not one of its dependencies, is not installed. */
export async function loaded<T>(name: string, module: Promise<T>): Promise<T | undefined> {
  try {
    return await module;
  } catch (error) {
    // Loaders of TypeScript and bundlers throw errors of their own, without Node's code.
    if (NOT_FOUND.exec((error as Error).message)?.[1] === name) return undefined;
    throw error;
  }
}
