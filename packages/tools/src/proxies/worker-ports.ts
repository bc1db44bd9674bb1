import { MAX_PORT } from '../arguments.js';
import { reasonOf } from '../endpoints.js';
import { oneLine, ToolError } from '../output.js';

/** How long to wait for the health endpoint. The worker that gets the request may be blocked. */
const TIMEOUT_MS = 5_000;

const INSTEAD = 'or describe it with --port and --workers';
const NO_CLUSTER = `its answer does not show a cluster. Give the URL of its health endpoint, which has to show details (health.details), ${INSTEAD}`;

interface Health {
  readonly details?: {
    readonly cluster?: {
      readonly balancing?: unknown;
      readonly desired?: unknown;
      readonly ports?: unknown;
    };
  };
}

/**
 * The ports of the workers of a cluster that does not run yet.
 *
 * @throws ToolError if a port would be out of range.
 */
export function describedPorts(port: number, workers: number): readonly number[] {
  if (port + workers - 1 > MAX_PORT) {
    throw new ToolError(
      `${workers} workers from port ${port} on go beyond port ${MAX_PORT}; lower one of them`,
    );
  }
  return Array.from({ length: workers }, (_, slot) => port + slot);
}

/**
 * The ports of the workers of the cluster whose `/health` is at `url`.
 *
 * @throws ToolError if the answer does not show a cluster whose workers have ports of their own.
 */
export async function runningPorts(url: string): Promise<readonly number[]> {
  const { balancing, desired, ports } = ((await readJson(url)) as Health)?.details?.cluster ?? {};
  if (typeof balancing !== 'string') throw new ToolError(`${url}: ${NO_CLUSTER}`);
  if (balancing !== 'ports') {
    throw new ToolError(
      `the cluster at ${oneLine(url)} has balancing '${oneLine(balancing)}', in which workers have no ports of their own; start it with CLUSTER_BALANCING=ports and at least one worker`,
    );
  }
  // The ports go into scripts, so only numbers are accepted. After a scale-down, the list also has
  // the ports of removed slots, which the other workers serve.
  const known = Array.isArray(ports) ? ports.slice(0, Number(desired)) : [];
  if (known.length === 0 || !known.every((port) => Number.isInteger(port))) {
    throw new ToolError(`${url}: ${NO_CLUSTER}`);
  }
  return known as number[];
}

async function readJson(url: string): Promise<unknown> {
  let response: Response;
  try {
    response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  } catch (error) {
    throw new ToolError(
      `${url}: ${reasonOf(error)}. Start the cluster, give its --url, ${INSTEAD}`,
      69,
    );
  }
  // The body of a 503 is read too: a cluster that is not healthy yet already has ports.
  return response.json().catch(() => undefined);
}
