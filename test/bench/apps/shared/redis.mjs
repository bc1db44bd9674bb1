import { Redis } from 'ioredis';

export const REDIS_URL = `redis://127.0.0.1:${process.env.REDIS}`;

export function connectRedis() {
  return new Redis(REDIS_URL);
}
