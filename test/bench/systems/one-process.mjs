import { ProcessGroup } from '../process-group.mjs';
import { livePids, startPlainApp } from './plain-app.mjs';
import { answersHello } from './answers.mjs';

/** @type {System} */
export const oneProcess = {
  name: 'one-process',
  label: () => 'one process',
  offload: false,
  abilities: [],
  async missing() {
    return undefined;
  },
  start({ port, ...options }) {
    return ProcessGroup.begin(async (group) => {
      const started = await startPlainApp(group, { ...options, port });
      await answersHello(group, port);
      return {
        port,
        enter: [],
        frontPids: () => [],
        workerPids: () => livePids([started]),
        stop: () => group.stop(),
      };
    });
  },
};
