import { once } from 'node:events';
import type { Command } from 'commander';
import { ClusterRefusedError } from '../../contract/errors/index.js';
import { httpUrl, portNumber } from '../cli/arguments.js';
import { ControlClient } from '../control/control-client.js';
import { clientFor, controlCommand, type ControlOptions } from '../control/control-command.js';
import { type FoundCluster, findCluster, labelOf } from '../control/found-cluster.js';
import { ClusterFeed } from './cluster-feed.js';
import { DashboardServer } from './dashboard-server.js';

interface DashboardOptions extends ControlOptions {
  readonly port?: number;
  readonly readOnly: boolean;
  /** `true` if neither `--metrics` nor `--no-metrics` was given. */
  readonly metrics: string | boolean;
}

/** `nestjs-cluster dashboard`. */
export function addDashboardCommand(program: Command): void {
  controlCommand(program, {
    name: 'dashboard',
    summary: 'Serves a page that shows a running cluster, and steers it',
    description:
      'Serves a page on 127.0.0.1 that shows a running cluster, and steers it, until Ctrl-C. The printed link opens it once',
    example: 'dashboard --port 9900 --read-only',
  })
    .option('-p, --port <port>', 'port of the page (default: one that is free)', portNumber)
    .option('--read-only', 'show, and change nothing', false)
    .option(
      '--metrics <url>',
      'page of metrics with the latency (default: that of the admin listener or the app)',
      httpUrl,
    )
    .option('--no-metrics', 'leave the metrics alone')
    .action((options: DashboardOptions) => serve(options));
}

async function serve(options: DashboardOptions): Promise<void> {
  const { readOnly, metrics, json } = options;
  let next: ControlClient | undefined = await clientFor(options);
  const first = next.cluster;
  const feed = new ClusterFeed({
    readOnly,
    metrics: metrics === true ? undefined : metrics,
    connect: async () => {
      const client = next ?? new ControlClient(await findAgain(first));
      next = undefined;
      return client;
    },
  });
  const server = new DashboardServer(feed, readOnly);
  try {
    await server.listen(options.port ?? 0);
  } catch (error) {
    throw new ClusterRefusedError(
      `cannot listen: ${(error as Error).message}; choose another --port`,
    );
  }
  const print = (before: string) =>
    process.stdout.write(
      json
        ? `${JSON.stringify({ cluster: first.name, pid: first.pid ?? null, url: server.newLink() })}\n`
        : `${before}${server.newLink()}\n`,
    );
  print(`Dashboard of ${labelOf(first)}, open until Ctrl-C. This link opens it once:\n`);
  if (process.stdin.isTTY) {
    process.stdout.write('Enter prints another link.\n');
    process.stdin.on('data', () => print('')).unref();
  }
  const end = new AbortController();
  const running = feed.run(end.signal);
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
  end.abort();
  server.close();
  await running;
  process.exit(0);
}

/** Finds the same cluster again. If it was restarted, its pid has changed, but not its name. */
async function findAgain({ name, pid, path }: FoundCluster): Promise<FoundCluster> {
  if (pid === undefined) return findCluster(path);
  return findCluster(String(pid)).catch(() => findCluster(name));
}
