import { ProcessGroup } from '../process-group.mjs';
import { livePids, startPlainApp } from './plain-app.mjs';
import { answersHello } from './answers.mjs';

/** @returns {System} */
export function singleProcess({ label, startApp, ...about }) {
  return {
    ...about,
    label: () => label,
    abilities: [],
    start({ port, ...options }) {
      return ProcessGroup.begin(async (group) => {
        const started = await startApp(group, { ...options, port });
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
}

export const oneProcess = singleProcess({
  name: 'one-process',
  label: 'one process',
  startApp: startPlainApp,
});
