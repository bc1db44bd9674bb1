import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import type { Command } from 'commander';
import type { ClusterSnapshot } from 'nestjs-cluster/bootstrap';
import { oneLine, ToolError } from './output.js';
import { resolveFromApp } from './resolve-from-app.js';

/** A primary that does not answer within this time is treated as blocked or stopped. */
const ANSWER_MS = 1_000;

/** The parts of the `GET /v1/status` answer that the tools use. */
export interface ClusterStatus extends Pick<ClusterSnapshot, 'primary'> {
  readonly name: string;
  readonly pid: number;
  readonly options: {
    readonly port?: number;
    readonly host?: string | null;
    readonly admin: { readonly port: number; readonly host: string } | null;
  };
  readonly cluster: Pick<ClusterSnapshot, 'ready' | 'workers'> & {
    readonly status: 'up' | 'degraded' | 'down';
    readonly reason?: string;
  };
}

/** Adds the option that chooses a running cluster. */
export function withCluster(command: Command): Command {
  return command.option(
    '-c, --cluster <name>',
    'cluster name, primary pid or control socket path; required if several clusters are running',
  );
}

interface Found {
  readonly name: string;
  readonly pid: number;
  readonly path: string;
}

/**
 * Finds a running cluster with `nestjs-cluster ps`.
 *
 * @param wanted the cluster's name, the pid of its primary or the path of its socket. Default: the only cluster.
 * @throws ToolError with exit code 69 if there is none, 64 if there are several.
 */
export async function findCluster(wanted?: string): Promise<ControlClient> {
  if (wanted?.includes('/')) return new ControlClient({ name: wanted, pid: 0, path: wanted });
  const all = await running();
  const fit = all.filter(
    ({ name, pid }) => wanted === undefined || name === wanted || String(pid) === wanted,
  );
  if (fit.length === 1) return new ControlClient(fit[0]!);
  const list = all.map(({ name, pid }) => `${name} (pid ${pid})`).join(', ') || 'none';
  if (fit.length > 1)
    throw new ToolError(`several clusters are running: ${list}; choose one with --cluster`, 64);
  throw new ToolError(`this user has no matching cluster; running clusters: ${list}`, 69);
}

async function running(): Promise<readonly Found[]> {
  const manifest = resolveFromApp('nestjs-cluster/package.json');
  if (manifest === undefined) {
    throw new ToolError('nestjs-cluster is not installed here; run npm install nestjs-cluster');
  }
  const { bin } = JSON.parse(readFileSync(manifest, 'utf8')) as { bin: Record<string, string> };
  const program = join(dirname(manifest), bin['nestjs-cluster']!);
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [program, 'ps', '--json']);
    return JSON.parse(stdout) as Found[];
  } catch (error) {
    const { code, stderr } = error as { readonly code?: unknown; readonly stderr?: string };
    if (code === 69) return [];
    throw new ToolError(`nestjs-cluster ps failed: ${oneLine(stderr ?? String(error))}`);
  }
}

/** Sends requests to one cluster over its control socket. */
export class ControlClient {
  constructor(readonly cluster: Found) {}

  get label(): string {
    const { name, pid } = this.cluster;
    return pid === 0 ? name : `${name} (pid ${pid})`;
  }

  status(): Promise<ClusterStatus> {
    return this.#ask('GET', '/v1/status', undefined, AbortSignal.timeout(ANSWER_MS));
  }

  /** Waits for the outcome without a time limit. @throws ToolError */
  post<T>(path: string, body: object = {}): Promise<T> {
    return this.#ask('POST', path, body);
  }

  async #ask<T>(method: string, path: string, body?: object, signal?: AbortSignal): Promise<T> {
    let answer: string;
    let response: IncomingMessage;
    try {
      response = await new Promise<IncomingMessage>((resolve, reject) => {
        const options = { socketPath: this.cluster.path, method, path, agent: false, signal };
        const asked = request(options, resolve).once('error', reject);
        asked.end(body && JSON.stringify(body));
      });
      answer = await text(response);
    } catch (error) {
      const why = signal?.aborted ? `no answer within ${ANSWER_MS} ms` : (error as Error).message;
      throw new ToolError(`cannot reach the cluster ${this.label}: ${why}`, 69);
    }
    if (response.statusCode === 200) return JSON.parse(answer) as T;
    throw new ToolError(
      messageIn(answer) ?? `the cluster answered with status ${response.statusCode}`,
    );
  }
}

function messageIn(answer: string): string | undefined {
  try {
    return oneLine((JSON.parse(answer) as { error: { message: string } }).error.message);
  } catch {
    return undefined;
  }
}
