import { fileURLToPath } from 'node:url';
import { ProcessGroup } from '../process-group.mjs';
import { serving } from './answers.mjs';
import { lacksIptables, makeNetworkNamespace, runScript } from './network-namespace.mjs';
import { SampleCluster } from './sample-app.mjs';

const COMMAND = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));

/** @type {System} */
export const nestjsClusterIptables = {
  name: 'nestjs-cluster-iptables',
  label: () => 'nestjs-cluster, ports behind iptables',
  abilities: ['reload', 'supervision'],
  missing: lacksIptables,
  start({ port, env, ...options }) {
    return ProcessGroup.begin(async (group) => {
      const enter = await makeNetworkNamespace(group);
      const appPort = port + 1;
      await runScript(group, enter, await printedRules(group, options, port, appPort));
      const cluster = new SampleCluster(group, {
        ...options,
        enter,
        port: appPort,
        env: { ...env, CLUSTER_BALANCING: 'ports' },
      });
      await cluster.serves();
      return serving(group, port, {
        enter,
        frontPids: cluster.frontPids,
        workerPids: cluster.workerPids,
        reload: () => cluster.reload(),
      });
    });
  },
};

/** The output of `nestjs-cluster iptables` for such a cluster. */
async function printedRules(group, { node, workers }, port, appPort) {
  const args = ['--port', appPort, '--workers', workers, '--listen', port].map(String);
  return `${(await group.run(node, [COMMAND, 'iptables', ...args])).join('\n')}\n`;
}
