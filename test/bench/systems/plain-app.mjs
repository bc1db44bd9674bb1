import { fileURLToPath } from 'node:url';

export const PLAIN_APP = fileURLToPath(new URL('../apps/plain.mjs', import.meta.url));

/** The environment that the plain app reads. */
export function plainEnvironment({ adapter, port, env }) {
  return { NODE_ENV: 'production', ...env, ADAPTER: adapter, PORT: String(port) };
}

/**
 * One process of the plain app. Resolves once it listens.
 *
 * @returns the process.
 */
export async function startPlainApp(group, { node, enter = [], ...app }) {
  const [command, ...args] = [...enter, node, PLAIN_APP];
  const started = group.spawn(command, args, { env: plainEnvironment(app) });
  await started.line((line) => /^plain app of process \d+ listens/.test(line) || undefined);
  return started;
}

/** Several of them, each on its own port: those behind `port`. */
export function startOnPorts(group, { workers, port, ...app }) {
  return Promise.all(
    workerPorts({ workers, port }).map((own) => startPlainApp(group, { ...app, port: own })),
  );
}

/** The workers' ports. Clients connect to the port below the first of them. */
export function workerPorts({ workers, port }) {
  return Array.from({ length: workers }, (_, k) => port + 1 + k);
}

/** The pids of the processes that have not ended. */
export function livePids(processes) {
  return processes.filter(({ runs }) => runs).map(({ pid }) => pid);
}
