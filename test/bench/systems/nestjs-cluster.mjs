import { ProcessGroup } from '../process-group.mjs';
import { serving } from './answers.mjs';
import { processesOnOnePort } from './plain-app.mjs';
import { lacksReusePort } from './requirements.mjs';
import { SampleCluster, startStandalone } from './sample-app.mjs';

/** @returns {System} */
function nestjsCluster(name, { label = name, balancing, offload, missing }) {
  return {
    name,
    label: () => label,
    offload,
    abilities: ['reload', 'supervision'],
    missing,
    start({ port, env, ...options }) {
      return ProcessGroup.begin(async (group) => {
        const cluster = new SampleCluster(group, {
          ...options,
          port,
          env: { ...env, ...(balancing && { CLUSTER_BALANCING: balancing }) },
        });
        await cluster.serves();
        return serving(group, port, {
          frontPids: cluster.frontPids,
          workerPids: cluster.workerPids,
          reload: () => cluster.reload(),
        });
      });
    },
  };
}

export const nestjsClusterShared = nestjsCluster('nestjs-cluster', {});

export const nestjsClusterReusePort = nestjsCluster('nestjs-cluster-reuse-port', {
  label: 'nestjs-cluster, reuse-port',
  balancing: 'reuse-port',
  missing: async ({ nodeVersion }) => lacksReusePort(nodeVersion),
});

export const nestjsClusterRoundRobin = nestjsCluster('nestjs-cluster-round-robin', {
  label: 'nestjs-cluster, round-robin',
  balancing: 'round-robin',
});

export const nestjsClusterCpuBound = nestjsCluster('nestjs-cluster-cpu-bound', {
  label: 'nestjs-cluster, @CpuBound',
  offload: true,
});

export const oneProcessCpuBound = processesOnOnePort({
  name: 'one-process-cpu-bound',
  ours: true,
  label: () => 'one process, @CpuBound',
  offload: true,
  start: async (group, options) => [await startStandalone(group, options)],
});
