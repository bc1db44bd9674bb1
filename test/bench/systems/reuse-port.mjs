import { ProcessGroup } from '../process-group.mjs';
import { serving } from './answers.mjs';
import { livePids, startPlainApp } from './plain-app.mjs';
import { lacksReusePort } from './requirements.mjs';

/** @type {System} */
export const reusePort = {
  name: 'reuse-port',
  label: ({ workers }) => `${workers} processes, reusePort`,
  abilities: [],
  async missing({ nodeVersion }) {
    return lacksReusePort(nodeVersion);
  },
  start({ workers, port, env, ...options }) {
    return ProcessGroup.begin(async (group) => {
      const started = await Promise.all(
        Array.from({ length: workers }, () =>
          startPlainApp(group, { ...options, port, env: { ...env, REUSE_PORT: '1' } }),
        ),
      );
      return serving(group, port, {
        workerPids: () => livePids(started),
      });
    });
  },
};
