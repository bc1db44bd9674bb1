import { once } from 'node:events';
import type { Command } from 'commander';
import { httpUrl, portNumber } from '../arguments.js';
import { type ControlClient, findCluster, withCluster } from '../cluster.js';
import { ToolError } from '../output.js';
import { ClusterFeed } from './cluster-feed.js';
import { DashboardServer } from './dashboard-server.js';

interface DashboardOptions {
  readonly cluster?: string;
  readonly port?: number;
  readonly readOnly: boolean;
  /** `true` if neither `--metrics` nor `--no-metrics` was given. */
  readonly metrics: string | boolean;
}

export function addDashboardCommand(program: Command): void {
  withCluster(program.command('dashboard'))
    .summary('Serves a page that shows a running cluster, and controls it')
    .description(
      'Serves a page on 127.0.0.1 that shows a running cluster, and controls it, until Ctrl-C.',
    )
    .option('-p, --port <port>', 'port of the page (default: a free port)', portNumber)
    .option('--read-only', 'show, and change nothing', false)
    .option(
      '--metrics <url>',
      'page of metrics with the latency (default: of the admin listener or the app)',
      httpUrl,
    )
    .option('--no-metrics', 'read no metrics')
    .action((options: DashboardOptions) => serve(options));
}

async function serve({ cluster, port = 0, readOnly, metrics }: DashboardOptions): Promise<void> {
  let next: ControlClient | undefined = await findCluster(cluster);
  const first = next;
  const { name, path, pid } = first.cluster;
  const connect = async (): Promise<ControlClient> => {
    // After a restart the pid is another, and the name is the same.
    const client = next ?? (await findCluster(pid === 0 ? path : name));
    next = undefined;
    return client;
  };
  const feed = new ClusterFeed({
    connect,
    readOnly,
    metrics: metrics === true ? undefined : metrics,
  });
  const server = new DashboardServer(feed, readOnly);
  const link = await server.listen(port).catch((error: Error) => {
    throw new ToolError(`cannot listen: ${error.message}; choose another --port`, 69);
  });
  process.stdout.write(`Dashboard of ${first.label}, open until Ctrl-C:\n${link}\n`);
  const end = new AbortController();
  const running = feed.run(end.signal);
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
  end.abort();
  server.close();
  await running;
  process.exit(0);
}
