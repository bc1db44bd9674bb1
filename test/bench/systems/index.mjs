import { iptables } from './iptables.mjs';
import {
  nestjsClusterCpuBound,
  nestjsClusterReusePort,
  nestjsClusterRoundRobin,
  nestjsClusterShared,
  oneProcessCpuBound,
} from './nestjs-cluster.mjs';
import { nodeClusterRoundRobin, nodeClusterShared } from './node-cluster.mjs';
import { nginx } from './nginx.mjs';
import { oneProcess, reusePort } from './plain-app.mjs';
import { pm2 } from './pm2.mjs';
import { watt } from './watt.mjs';

/** What is compared, in the order of the tables. */
export const SYSTEMS = [
  oneProcess,
  nodeClusterRoundRobin,
  nodeClusterShared,
  reusePort,
  pm2,
  watt,
  nginx,
  iptables,
  nestjsClusterShared,
  nestjsClusterReusePort,
  nestjsClusterRoundRobin,
  nestjsClusterCpuBound,
  oneProcessCpuBound,
];

/** Systems that serve every route of the sample app without threads. */
export const EVERYBODY = SYSTEMS.filter(({ offload }) => !offload).map(({ name }) => name);

/** The path of fibonacci(35): in a thread where the system offloads it. */
export function heavyPath(offload) {
  return offload ? '/offload/test' : '/test';
}
