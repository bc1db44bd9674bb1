import { setTimeout as delay } from 'node:timers/promises';
import { wrk } from '../load/wrk.mjs';
import { readMemory } from '../usage.mjs';
import { compare } from './compare.mjs';

const LOAD_SECONDS = 5;
const IDLE_MS = 1_000;

/** nestjs-cluster with its threads turned off, which shows how much memory that saves. */
const VARIANTS = [
  { label: 'nestjs-cluster, no threads for @CpuBound', env: { CLUSTER_OFFLOAD: 'inline' } },
  {
    label: 'nestjs-cluster, neither threads nor watchdog',
    env: { CLUSTER_OFFLOAD: 'inline', SAMPLE_OPTIONS: '{"watchdog":false}' },
  },
];

export const memory = {
  name: 'memory',
  title: 'Memory',
  about: `Resident memory when idle, and after ${LOAD_SECONDS} s of wrk on 64 kept connections. A worker of nestjs-cluster has, beside the app, the watchdog's thread, and where the app has @CpuBound() methods, as the sample app does, what is loaded for them: no thread runs before the first call, but one worker has checked at the start that a thread can load them. The last rows are without.`,
  rounds: 3,
  programs: ['wrk'],
  adapters: ['express', 'fastify'],
  parameters: { loadSeconds: LOAD_SECONDS, connections: 64 },
  metric: 'totalRssBytes',
  rows(run) {
    const systems = run.pick([
      'one-process',
      'node-cluster-round-robin',
      'node-cluster-shared',
      'reuse-port',
      'pm2',
      'watt',
      'nginx',
      'nestjs-cluster',
    ]);
    const ours = systems.find(({ name }) => name === 'nestjs-cluster');
    return compare({
      run,
      contestants: [
        ...systems.map((system) => ({ system })),
        ...(ours ? VARIANTS.map((variant) => ({ system: ours, ...variant })) : []),
      ],
      async measure(running) {
        await delay(IDLE_MS);
        const idle = readMemory(running);
        await wrk(running, { path: '/hello', connections: 64, seconds: LOAD_SECONDS });
        await delay(IDLE_MS);
        return {
          idleFrontRssBytes: idle.frontRssBytes,
          idleWorkerRssBytes: idle.workerRssBytes,
          idleTotalRssBytes: idle.totalRssBytes,
          ...readMemory(running),
        };
      },
    });
  },
};
