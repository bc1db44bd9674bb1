/** Systems that serve the sample app's routes on as many processes as there are workers, and one. */
export const EVERYBODY = [
  'one-process',
  'node-cluster-round-robin',
  'node-cluster-shared',
  'reuse-port',
  'pm2',
  'watt',
  'nginx',
  'iptables',
  'nestjs-cluster',
  'nestjs-cluster-reuse-port',
  'nestjs-cluster-round-robin',
];
