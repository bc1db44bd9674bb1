import { once } from 'node:events';
import net from 'node:net';

/** Below what the kernel gives to clients and to port 0. */
const FIRST_PORT = 20_000;
const PORTS = 12_000;

const MAX_ATTEMPTS = 50;

/** The first of `count` ports in a row on 127.0.0.1 that nobody has. */
export async function freePorts(count: number): Promise<number> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const first = FIRST_PORT + Math.floor(Math.random() * (PORTS - count));
    if (await allFree(first, count)) return first;
  }
  throw new Error(`no ${count} free ports in a row in ${MAX_ATTEMPTS} attempts`);
}

async function allFree(first: number, count: number): Promise<boolean> {
  const ports = Array.from({ length: count }, (_, i) => first + i);
  const held = await Promise.allSettled(ports.map(holdPort));
  for (const each of held) if (each.status === 'fulfilled') each.value.close();
  return held.every(({ status }) => status === 'fulfilled');
}

/** Listens on a port of 127.0.0.1; rejects where somebody has it. */
export async function holdPort(port: number): Promise<net.Server> {
  const server = net.createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  return server;
}
