/** The settings of a metric of this package for its constructor in prom-client. */
export function named(name: string, help: string) {
  const registers: [] = []; // none: the default registry of prom-client is the app's
  return { name: `nestjs_cluster_${name}`, help, registers };
}
