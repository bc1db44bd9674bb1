// An app whose workers use the shared cache, rate limits, locks and limits all the time, and write down each call.
//
// RECORD_DIR   each worker appends the lines of its history to a file there; the run ends at a file 'stop'
// MUTATION     'stale-read': now and then a read gives the value that this worker has read before;
//              'one-more': now and then a call runs without a place of the limit
import { appendFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ClusterModule } from 'nestjs-cluster';
import { ClusterCache } from '@nestjs-cluster/shared/cache';
import { ClusterLimit } from '@nestjs-cluster/shared/limit';
import { ClusterLock } from '@nestjs-cluster/shared/lock';
import { hubOf } from '@nestjs-cluster/shared/internal';

const CLIENTS = 12;
const LARGE_BYTES = 1024 * 1024;
/** As many as the model in main.go has. */
const PLACES = 2;
const { RECORD_DIR, MUTATION } = process.env;
const file = join(RECORD_DIR, `${process.pid}.jsonl`);
const log = (line) => appendFileSync(file, `${JSON.stringify(line)}\n`);
/** µs by the clock of the machine. */
const now = () => Number(process.hrtime.bigint() / 1_000n);
const pick = (count) => Math.floor(Math.random() * count);
/** Keys are used for two seconds: a checker needs long for a key with many calls of unknown end. */
const keyOf = (kind, count) => `${kind}-${Math.floor(now() / 2e6)}-${pick(count)}`;

let lastId = 0;

/** Writes down that a call begins, and how it ends. It has no end where nobody knows whether it was done. */
function begin(kind, op, key, value) {
  const id = `${process.pid}-${(lastId += 1)}`;
  log({ id, kind, op, key, value, call: now() });
  return (output) => log({ id, output: String(output), return: now() });
}

/** As ClusterThrottlerStorage, but fails where that counts in its own worker. */
const COUNT = { op: 'count', ttl: 600_000, limit: 25, block: 0, throttler: 'default' };

function clientOf(cache, lock, limit) {
  const seen = new Map();
  const read = async (key) => {
    const end = begin('cache', 'read', key);
    const value = (await cache.get(key))?.trimEnd() ?? '';
    const isStale = MUTATION === 'stale-read' && seen.has(key) && pick(50) === 0;
    end(isStale ? seen.get(key) : value);
    seen.set(key, value);
  };
  const write = async (key) => {
    const value = `${process.pid}-${(lastId += 1)}`;
    const end = begin('cache', 'write', key, value);
    await cache.set(key, pick(30) === 0 ? value.padEnd(LARGE_BYTES) : value);
    end('');
  };
  const remove = async (key) => {
    const end = begin('cache', 'write', key, '');
    await cache.delete(key);
    end('');
  };
  const count = async (key) => {
    const end = begin('limit', 'count', key);
    const { header } = await hubOf().ask({ ...COUNT, key }, 1_000);
    end(header.isBlocked ? 'blocked' : 'passed');
  };
  const hold = async (key) => {
    const acquired = begin('lock', 'acquire', key);
    await lock
      .runExclusive(
        key,
        async ({ signal, token }) => {
          acquired(token);
          await delay(pick(5));
          const released = begin('lock', 'release', key, String(token));
          return signal.aborted ? () => {} : released;
        },
        { waitMs: 10_000 },
      )
      .then((released) => released(''));
  };
  const enter = async (key) => {
    const acquired = begin('place', 'acquire', key);
    const work = async (signal) => {
      const place = `${process.pid}-${(lastId += 1)}`;
      acquired(place);
      await delay(pick(20) === 0 ? pick(500) : pick(5)); // some run when the hub ends
      const released = begin('place', 'release', key, place);
      return signal.aborted ? () => {} : released;
    };
    const isExtra = MUTATION === 'one-more' && pick(50) === 0;
    const released = await (isExtra ? work({ aborted: false }) : limit.run(key, work));
    released('');
  };
  return () => {
    const dice = Math.random();
    if (dice < 0.35) return read(keyOf('cache', 12));
    if (dice < 0.5) return write(keyOf('cache', 12));
    if (dice < 0.55) return remove(keyOf('cache', 12));
    if (dice < 0.8) return count(keyOf('limit', 12));
    if (dice < 0.9) return enter(keyOf('place', 4));
    return hold(keyOf('lock', 4));
  };
}

async function createApp() {
  class AppModule {}
  const limit = new ClusterLimit('tenant', { max: PLACES, maxWaiting: 100, waitMs: 10_000 });
  Module({
    imports: [ClusterModule.forRoot()],
    providers: [ClusterCache, ClusterLock],
  })(AppModule);
  const app = await NestFactory.create(AppModule, { logger: ['error'] });
  const client = clientOf(app.get(ClusterCache), app.get(ClusterLock), limit);
  let running = true;
  setInterval(() => (running &&= !existsSync(join(RECORD_DIR, 'stop'))), 100).unref();
  for (let n = 0; n < CLIENTS; n += 1) {
    void (async () => {
      await delay(500); // the app comes up first
      while (running) {
        await client().catch(() => {}); // it has no end then
        await delay(pick(8));
      }
    })();
  }
  return app;
}

await ClusterModule.bootstrap(createApp, {
  host: '127.0.0.1',
  port: 0,
  workers: 4,
  reload: { observeMs: 0 }, // the faults would bring the previous release back
  control: false,
  hangTimeoutMs: false,
});
