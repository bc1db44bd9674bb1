import { request } from 'node:http';

/** The answer of a route of the control socket. */
export interface ControlAnswer {
  readonly status: number;
  readonly body: string;
  readonly tookMs: number;
}

/** Asks the control socket at `socketPath`. */
export function ask(
  socketPath: string,
  method: 'GET' | 'POST',
  path: string,
  signal?: AbortSignal,
): Promise<ControlAnswer> {
  const startedAt = performance.now();
  return new Promise((resolve, reject) => {
    const headers = { Host: 'localhost', 'Content-Type': 'application/json' };
    const asked = request({ socketPath, method, path, headers, signal }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
      response.on('error', reject);
      response.on('end', () => {
        const tookMs = performance.now() - startedAt;
        resolve({ status: response.statusCode!, body, tookMs });
      });
    });
    asked.on('error', reject);
    asked.end();
  });
}

interface CpuProfile {
  readonly nodes: readonly { id: number; callFrame: { functionName: string } }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** The function of a `.cpuprofile` that took most of the time by itself. */
export function hottestIn(json: string): string {
  const { nodes, samples, timeDeltas } = JSON.parse(json) as CpuProfile;
  const names = new Map(nodes.map(({ id, callFrame }) => [id, callFrame.functionName]));
  const times = new Map<string, number>();
  for (const [index, sample] of samples.entries()) {
    const name = names.get(sample)!;
    times.set(name, (times.get(name) ?? 0) + timeDeltas[index]!);
  }
  return [...times].toSorted(([, a], [, b]) => b - a)[0]![0];
}
