import type { AddressInfo } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import { ADMIN_SCRAPE_TIMEOUT_MS } from '../../contract/snapshot/index.js';
import {
  type AdminAnswer,
  type AdminAnswers,
  type AdminData,
  type AdminSource,
  type AdminThreadMessage,
  PrimaryTimeout,
} from './admin-messages.js';
import { createAdminServer } from './admin-server.js';

/** Maximum time for an answer of the primary, in ms. A slower primary is blocked or stopped. */
const ANSWER_TIMEOUTS_MS: Readonly<Record<keyof AdminSource, number>> = {
  snapshot: 1_000,
  collectMetrics: ADMIN_SCRAPE_TIMEOUT_MS,
};

const primary = parentPort!;
const { host, port, tokenHash } = workerData as AdminData;
const waiting = new Map<number, (answer: never) => void>();
let lastId = 0;

primary.on('message', ({ id, answer }: AdminAnswer) => {
  waiting.get(id)?.(answer as never);
  waiting.delete(id);
});

function tell(message: AdminThreadMessage): void {
  primary.postMessage(message);
}

function ask<K extends keyof AdminSource>(what: K): Promise<AdminAnswers[K]> {
  const id = ++lastId;
  const timeoutMs = ANSWER_TIMEOUTS_MS[what];
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      waiting.delete(id);
      reject(new PrimaryTimeout(timeoutMs));
    }, timeoutMs);
    waiting.set(id, (answer) => {
      clearTimeout(timer);
      resolve(answer);
    });
    tell({ type: 'ask', id, what });
  });
}

const source: AdminSource = {
  snapshot: () => ask('snapshot'),
  collectMetrics: () => ask('collectMetrics'),
};
const server = createAdminServer(host, source, tokenHash);
server.once('error', (error: NodeJS.ErrnoException) => {
  const { message, code } = error;
  tell({ type: 'failed', error: { message, ...(code !== undefined && { code }) } });
});
server.listen({ host, port }, () => {
  const { address, port: actual } = server.address() as AddressInfo;
  const shown = address.includes(':') ? `[${address}]` : address;
  tell({ type: 'listening', url: `http://${shown}:${actual}`, port: actual });
});
