import { iptables } from './iptables.mjs';
import { nestjsClusterIptables } from './nestjs-cluster-ports.mjs';
import {
  nestjsClusterCpuBound,
  nestjsClusterReusePort,
  nestjsClusterRoundRobin,
  nestjsClusterShared,
  oneProcessCpuBound,
} from './nestjs-cluster.mjs';
import { nodeClusterRoundRobin, nodeClusterShared } from './node-cluster.mjs';
import { nginx } from './nginx.mjs';
import { oneProcess } from './one-process.mjs';
import { pm2 } from './pm2.mjs';
import { reusePort } from './reuse-port.mjs';
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
  nestjsClusterIptables,
  nestjsClusterCpuBound,
  oneProcessCpuBound,
];
