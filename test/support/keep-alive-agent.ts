import http from 'node:http';
import { onTestFinished } from 'vitest';
import { request } from './http-client.js';

const MAX_ATTEMPTS = 500;

/**
 * An agent with one connection that it wants to keep: without one a client asks
 * by its own `Connection: close` for what a test wants to see the server do.
 */
export function keepAliveAgent(): http.Agent {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  return agent;
}

/**
 * An agent whose one connection leads to a certain worker: the way to ask that
 * one and no other. The connection stays with its worker as long as both live.
 */
export async function agentOf(base: string, pid: number): Promise<http.Agent> {
  const seen = new Set<number>();
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const agent = keepAliveAgent();
    const { outcome, body } = await request(base, '/whoami', { agent });
    const answeredBy = outcome === 'ok' ? (JSON.parse(body) as { pid: number }).pid : 0;
    if (answeredBy === pid) return agent;
    agent.destroy();
    seen.add(answeredBy);
  }
  throw new Error(`no connection to ${pid} in ${MAX_ATTEMPTS}, only to ${[...seen].join(', ')}`);
}
