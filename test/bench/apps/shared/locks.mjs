import { ClusterLock } from 'nestjs-cluster/lock';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { connectRedis } from './redis.mjs';

const EXPIRES_MS = 10_000;
const HELD_MS = 1;

/** As the page of Redis on locks has it: nobody gives back what is another's by now. */
const RELEASE = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`;

export async function lockOperations() {
  const lock = new ClusterLock();
  const redis = connectRedis();
  redis.defineCommand('giveBack', { numberOfKeys: 1, lua: RELEASE });
  const exclusively = async (name, run) => {
    const token = randomUUID();
    // Redis tells nobody that a lock is free: who waits asks again.
    while ((await redis.set(name, token, 'PX', EXPIRES_MS, 'NX')) !== 'OK') {
      await delay(5 + Math.random() * 10);
    }
    try {
      return await run();
    } finally {
      await redis.giveBack(name, token);
    }
  };
  const own = (place) => `lock ${process.pid} ${place}`;
  const hold = () => delay(HELD_MS);
  return {
    'free lock hub': (place) => lock.runExclusive(own(place), () => {}),
    'free lock redis': (place) => exclusively(own(place), () => {}),
    'contended lock hub': () => lock.runExclusive('all', hold),
    'contended lock redis': () => exclusively('all', hold),
  };
}
