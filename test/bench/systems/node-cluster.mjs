import { fileURLToPath } from 'node:url';
import { ProcessGroup } from '../process-group.mjs';
import { clusterWorkers } from '../process-table.mjs';
import { serving } from './answers.mjs';
import { livePids, plainEnvironment } from './plain-app.mjs';

const PROGRAM = fileURLToPath(new URL('../apps/node-cluster.mjs', import.meta.url));

/** @returns {System} */
function nodeCluster(scheduling, label) {
  return {
    name: `node-cluster-${scheduling}`,
    label: () => label,
    abilities: ['reload', 'supervision'],
    start({ node, workers, port, ...options }) {
      return ProcessGroup.begin(async (group) => {
        const primary = group.spawn(node, [PROGRAM], {
          env: {
            ...plainEnvironment({ ...options, port }),
            WORKERS: String(workers),
            SCHEDULING: scheduling,
          },
        });
        let listening = 0;
        await primary.line((line) => {
          if (/^worker \d+ listening$/.test(line)) listening += 1;
          return listening === workers || undefined;
        });
        return serving(group, port, {
          frontPids: () => livePids([primary]),
          workerPids: () => clusterWorkers(primary.pid),
          async reload() {
            const reloaded = primary.line((line) => line === 'reloaded' || undefined);
            primary.kill('SIGHUP');
            await reloaded;
          },
        });
      });
    },
  };
}

export const nodeClusterRoundRobin = nodeCluster('round-robin', 'node:cluster, round-robin');
export const nodeClusterShared = nodeCluster('shared', 'node:cluster, shared handle');
