import { once } from 'node:events';
import type { Command } from 'commander';
import { httpUrl, portNumber } from '../arguments.js';
import { findCluster, withCluster } from '../cluster.js';
import { ToolError } from '../output.js';
import { ClusterFeed } from './cluster-feed.js';
import { DashboardServer } from './dashboard-server.js';

interface DashboardOptions {
  readonly cluster?: string;
  readonly port?: number;
  readonly readOnly: boolean;
  readonly metrics?: string;
}

export function addDashboardCommand(program: Command): void {
  withCluster(program.command('dashboard'))
    .summary('Serves a dashboard to watch and control a running cluster')
    .description(
      'Serves a dashboard on 127.0.0.1 to watch and control a running cluster. Ctrl-C stops it.',
    )
    .option('-p, --port <port>', 'port of the page (default: a free port)', portNumber)
    .option('--read-only', 'disable all changes', false)
    .option(
      '--metrics <url>',
      "metrics URL to read latency from (default: from the app's options)",
      httpUrl,
    )
    .action(serve);
}

async function serve({ cluster, port, readOnly, metrics }: DashboardOptions): Promise<void> {
  const client = await findCluster(cluster);
  const { name, path, pid } = client.cluster;
  // A restart changes the pid but not the name.
  const reconnect = () => findCluster(pid === 0 ? path : name);
  const feed = new ClusterFeed({ client, reconnect, readOnly, metricsUrl: metrics });
  const server = new DashboardServer(feed, readOnly);
  const url = await server.listen(port ?? 0).catch((error: Error) => {
    throw new ToolError(`cannot listen: ${error.message}; choose another --port`, 69);
  });
  process.stdout.write(`Dashboard for ${client.label} (Ctrl-C stops it):\n${url}\n`);
  const end = new AbortController();
  void feed.run(end.signal);
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
  end.abort();
  server.close();
  process.exit(0);
}
