import { fileURLToPath } from 'node:url';
import { ProcessGroup } from '../process-group.mjs';
import { answersHello } from './answers.mjs';
import { lacksIptables, makeNetworkNamespace, runScript } from './network-namespace.mjs';
import { lacksNginx, startNginx } from './nginx-proxy.mjs';
import { SampleCluster } from './sample-app.mjs';

const COMMAND = fileURLToPath(new URL('../../../dist/tools/cli/main.js', import.meta.url));

/** @type {System} */
export const nestjsClusterNginx = {
  name: 'nestjs-cluster-nginx',
  label: () => 'nestjs-cluster, ports behind nginx',
  offload: false,
  single: false,
  abilities: ['reload', 'supervision'],
  async missing() {
    return lacksNginx();
  },
  start(options) {
    return ProcessGroup.begin(async (group) => {
      const cluster = await startOnPorts(group, options);
      const configuration = await printed(group, 'nginx', options, `127.0.0.1:${options.port}`);
      const nginxPids = await startNginx(group, options.port, configuration);
      return running(group, cluster, { port: options.port, enter: [], nginxPids });
    });
  },
};

/** @type {System} */
export const nestjsClusterIptables = {
  name: 'nestjs-cluster-iptables',
  label: () => 'nestjs-cluster, ports behind iptables',
  offload: false,
  single: false,
  abilities: ['reload', 'supervision'],
  missing: lacksIptables,
  start(options) {
    return ProcessGroup.begin(async (group) => {
      const enter = await makeNetworkNamespace(group);
      await runScript(group, enter, await printed(group, 'iptables', options, options.port));
      const cluster = await startOnPorts(group, { ...options, enter });
      await answersHello(group, options.port, enter);
      return running(group, cluster, { port: options.port, enter, nginxPids: () => [] });
    });
  },
};

async function startOnPorts(group, { port, env, ...options }) {
  const cluster = new SampleCluster(group, {
    ...options,
    port: port + 1,
    env: { ...env, CLUSTER_BALANCING: 'ports' },
  });
  await cluster.serves();
  return cluster;
}

/** The output of `nestjs-cluster nginx` or `nestjs-cluster iptables` for such a cluster. */
async function printed(group, front, { node, workers, port }, listen) {
  const args = ['--port', port + 1, '--workers', workers, '--listen', listen].map(String);
  return `${(await group.run(node, [COMMAND, front, ...args])).join('\n')}\n`;
}

/** Lacks `scale()`: nginx or iptables only knows the ports that it was set up for. */
function running(group, cluster, { port, enter, nginxPids }) {
  return {
    port,
    enter,
    frontPids: () => [...cluster.frontPids(), ...nginxPids()],
    workerPids: cluster.workerPids,
    reload: () => cluster.reload(),
    stop: () => group.stop(),
  };
}
