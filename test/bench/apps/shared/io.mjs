import { IoAdapter } from '@nestjs/platform-socket.io';
import { createAdapter } from '@socket.io/redis-streams-adapter';
import { ClusterIoAdapter } from 'nestjs-cluster/socket.io';
import { setTimeout as delay } from 'node:timers/promises';
import { connectRedis } from './redis.mjs';
import { monotonicMs } from './monotonic.mjs';

const EVERY_MS = 5;

/** Two servers of Socket.IO in one app, each with a path of its own. */
export async function openIo(app) {
  const transports = ['websocket'];
  const servers = {
    hub: new ClusterIoAdapter(app).createIOServer(0, { path: '/hub.io', transports }),
    redis: new IoAdapter(app).createIOServer(0, {
      path: '/redis.io',
      transports,
      adapter: createAdapter(connectRedis()),
    }),
  };
  const broadcast = (server) => async () => {
    server.emit('told', { at: monotonicMs(), text: 'x'.repeat(100) });
    await delay(EVERY_MS);
  };
  return { 'broadcast hub': broadcast(servers.hub), 'broadcast redis': broadcast(servers.redis) };
}
