import { ProcessGroup } from '../process-group.mjs';
import { livePids, startPlainApp } from './plain-app.mjs';
import { serving } from './answers.mjs';

/** @returns {System} */
export function singleProcess({ label, startApp, ...about }) {
  return {
    ...about,
    label: () => label,
    abilities: [],
    start({ port, ...options }) {
      return ProcessGroup.begin(async (group) => {
        const started = await startApp(group, { ...options, port });
        return serving(group, port, {
          workerPids: () => livePids([started]),
        });
      });
    },
  };
}

export const oneProcess = singleProcess({
  name: 'one-process',
  label: 'one process',
  startApp: startPlainApp,
});
