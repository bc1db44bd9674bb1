import { fileURLToPath } from 'node:url';
import { ProcessGroup } from '../process-group.mjs';
import { serving } from './answers.mjs';
import { lacksReusePort } from './requirements.mjs';

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
async function startPlainApp(group, { node, enter = [], ...app }) {
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

/** A system of processes that all listen on one port. @returns {System} */
export function processesOnOnePort({ label, start, ...about }) {
  return {
    ...about,
    label,
    abilities: [],
    start({ port, ...options }) {
      return ProcessGroup.begin(async (group) => {
        const started = await start(group, { ...options, port });
        return serving(group, port, { workerPids: () => livePids(started) });
      });
    },
  };
}

export const oneProcess = processesOnOnePort({
  name: 'one-process',
  label: () => 'one process',
  start: async (group, options) => [await startPlainApp(group, options)],
});

export const reusePort = processesOnOnePort({
  name: 'reuse-port',
  label: ({ workers }) => `${workers} processes, reusePort`,
  missing: async ({ nodeVersion }) => lacksReusePort(nodeVersion),
  start: (group, { workers, env, ...options }) =>
    Promise.all(
      Array.from({ length: workers }, () =>
        startPlainApp(group, { ...options, env: { ...env, REUSE_PORT: '1' } }),
      ),
    ),
});
