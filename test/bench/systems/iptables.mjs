import { ProcessGroup } from '../process-group.mjs';
import { serving } from './answers.mjs';
import { lacksIptables, makeNetworkNamespace, runScript } from './network-namespace.mjs';
import { livePids, startOnPorts, workerPorts } from './plain-app.mjs';

/** @type {System} */
export const iptables = {
  name: 'iptables',
  label: ({ workers }) => `iptables, ${workers} ports`,
  abilities: [],
  missing: lacksIptables,
  start({ workers, port, ...options }) {
    return ProcessGroup.begin(async (group) => {
      const enter = await makeNetworkNamespace(group);
      await runScript(group, enter, rules(workerPorts({ workers, port }), port));
      const started = await startOnPorts(group, { ...options, workers, port, enter });
      return serving(group, port, {
        enter,
        workerPids: () => livePids(started),
      });
    });
  },
};

/** Each rule takes one in n of the connections that reach it, where n workers are left. */
function rules(ports, listen) {
  return ports
    .map((port, k) => {
      const left = ports.length - k;
      const share = left > 1 ? `-m statistic --mode nth --every ${left} --packet 0 ` : '';
      return `iptables -t nat -A OUTPUT -p tcp -d 127.0.0.1 --dport ${listen} ${share}-j REDIRECT --to-ports ${port}`;
    })
    .join(' && ');
}
