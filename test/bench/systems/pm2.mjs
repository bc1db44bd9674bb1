import { readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { ProcessGroup } from '../process-group.mjs';
import { clusterWorkers, withDescendants } from '../process-table.mjs';
import { answersFromAll, serving } from './answers.mjs';
import { PLAIN_APP, plainEnvironment } from './plain-app.mjs';
import { lacksPackage } from './requirements.mjs';

const COMMAND = fileURLToPath(new URL('../node_modules/pm2/bin/pm2', import.meta.url));
const NAME = 'plain';

/**
 * As pm2's page on graceful shutdown advises: a new process replaces an old one once it says that it
 * is ready, and the old one has more time to drain than it needs.
 */
const GRACEFUL = ['--wait-ready', '--listen-timeout', '30000', '--kill-timeout', '15000'];

/** @type {System} */
export const pm2 = {
  name: 'pm2',
  label: ({ workers }) => `pm2 -i ${workers}`,
  abilities: ['reload', 'supervision'],
  async missing() {
    return lacksPackage('pm2');
  },
  start({ node, workers, port, ...options }) {
    return ProcessGroup.begin(async (group) => {
      const home = group.temporaryFolder();
      // pm2 starts programs by the name `node`; this makes that the Node under test.
      symlinkSync(node, path.join(home, 'node'));
      const env = {
        ...plainEnvironment({ ...options, port }),
        PATH: `${home}:${process.env.PATH}`,
        HOME: home,
        PM2_HOME: home,
        PM2_DISABLE_VERSION_CHECK: 'true',
      };
      const command = (...args) => group.run(node, [COMMAND, ...args], { env, cwd: home });
      await command('start', PLAIN_APP, '--name', NAME, '-i', String(workers), ...GRACEFUL);
      // The daemon is not a child of the process that started it.
      const daemon = Number(readFileSync(path.join(home, 'pm2.pid'), 'utf8'));
      const workerPids = () => clusterWorkers(daemon);
      await answersFromAll(group, port, workers);
      return serving(group, port, {
        frontPids: () =>
          [...withDescendants([daemon])].filter((pid) => !workerPids().includes(pid)),
        workerPids,
        reload: async () => void (await command('reload', NAME)),
      });
    });
  },
};
