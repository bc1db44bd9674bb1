/** @returns a function that names a metric of this package, for its constructor in prom-client. */
export function metricNames(prefix: string) {
  const registers: [] = []; // none: the default registry of prom-client is the app's
  return (name: string, help: string) => ({
    name: `${prefix}nestjs_cluster_${name}`,
    help,
    registers,
  });
}
