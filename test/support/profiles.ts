import { type Answer, request } from './http-client.js';

/** Asks the control socket at `socketPath`. */
export function ask(socketPath: string, method: 'GET' | 'POST', path: string): Promise<Answer> {
  const headers = { Host: 'localhost', 'Content-Type': 'application/json' };
  return request(`unix:${socketPath}`, path, { method, headers });
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
