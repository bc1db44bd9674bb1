import type * as Terminus from '@nestjs/terminus';
import { ClusterConfigurationError } from '../../errors/index.js';

const TERMINUS = '@nestjs/terminus';

/** Whether @nestjs/terminus is installed. If not, it may be a part of a bundle: see {@link loadTerminus}. */
export function hasTerminus(): boolean {
  const { resolve } = import.meta as Partial<ImportMeta>;
  try {
    return resolve?.(TERMINUS) !== undefined; // CommonJS has no such function
  } catch {
    return false;
  }
}

/** @throws ClusterConfigurationError if it is not installed. */
export async function loadTerminus(): Promise<typeof Terminus> {
  const install = `npm install ${TERMINUS} (with Nest 11: ${TERMINUS}@11)`;
  return (
    (await loaded(TERMINUS, import('@nestjs/terminus'))) ??
    refuse('health', `${TERMINUS}, which is not installed; run ${install}`)
  );
}

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
    const { code = '', message } = error as NodeJS.ErrnoException;
    // Vitest throws an error without a code: `Could not resolve "…" imported by "…"`.
    const isNotFound = code.endsWith('MODULE_NOT_FOUND') || message.startsWith('Could not resolve');
    if (isNotFound && message.includes(name)) return undefined;
    throw error;
  }
}
