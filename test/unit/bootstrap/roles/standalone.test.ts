import 'reflect-metadata';
import { channel } from 'node:diagnostics_channel';
import type { EventEmitter } from 'node:events';
import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { trace, type TracerProvider } from '@opentelemetry/api';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { CreateAppContext } from '../../../../src/bootstrap/cluster-runtime.interface.js';
import { currentLink } from '../../../../src/contract/snapshot/current-link.js';
import { runStandalone } from '../../../../src/bootstrap/roles/run-standalone.js';
import { resolveOptions } from '../../../../src/contract/options/resolve.js';

const STARTS = 12;

const CHANNELS = [
  'tracing:net.server.listen:asyncEnd',
  'http.server.request.start',
  'http.server.response.finish',
];

const OPTIONS = {
  workers: 0,
  port: 0,
  host: '127.0.0.1',
  shutdown: { lameDuckMs: 0 },
} as const;

const options = resolveOptions(OPTIONS);

@Module({})
class AppModule {}

const create = (module: object = AppModule) => NestFactory.create(module, { logger: false });

function silence(): void {
  for (const stream of [process.stdout, process.stderr]) {
    vi.spyOn(stream, 'write').mockReturnValue(true);
  }
}

async function startAndShutDown(): Promise<void> {
  const runtime = await runStandalone(
    async () => (await create()).enableShutdownHooks(['SIGTERM', 'SIGUSR2']),
    options,
  );
  await runtime.shutdown();
}

function listenersOf(emitter: EventEmitter) {
  return Object.fromEntries(
    emitter.eventNames().map((name) => [String(name), emitter.listenerCount(name)]),
  );
}

function ofTheProcess() {
  return {
    listeners: listenersOf(process),
    subscribed: CHANNELS.filter((name) => channel(name).hasSubscribers),
  };
}

function ofTheStreams() {
  return [process.stdout, process.stderr].map((stream) => ({
    listeners: listenersOf(stream),
    write: Reflect.get(stream, '_write') as unknown,
  }));
}

it('leaves nothing behind if an app starts and shuts down many times in one process', async () => {
  const begun = vi.spyOn(globalThis, 'setInterval');
  const ended = vi.spyOn(globalThis, 'clearInterval');
  silence();
  const before = ofTheProcess();
  await startAndShutDown();
  // The first start guards the output, and the guard stays. Later starts must not add another one.
  const guarded = ofTheStreams();

  for (let start = 1; start < STARTS; start++) await startAndShutDown();

  expect(ofTheProcess()).toEqual(before);
  expect(ofTheStreams()).toEqual(guarded);
  const timers = new Set(begun.mock.results.map(({ value }) => value as NodeJS.Timeout));
  for (const [timer] of ended.mock.calls) timers.delete(timer as NodeJS.Timeout);
  expect(timers.size).toBe(0);
  expect(currentLink()).toBeUndefined();
});

it('gives createApp() the identity that ClusterService has: slot 0', async () => {
  silence();
  const createApp = vi.fn((_context: CreateAppContext) => create());
  const runtime = await runStandalone(createApp, options);
  const { identity } = currentLink()!;
  await runtime.shutdown();

  expect(identity).toEqual({ slot: 0, pid: process.pid, generation: 0 });
  expect(createApp.mock.calls).toEqual([[{ worker: identity }]]);
});

it('leaves nothing behind if the app cannot be created', async () => {
  const before = ofTheProcess();
  const failing = runStandalone(() => Promise.reject(new Error('no database')), options);
  await expect(failing).rejects.toThrow('no database');
  expect(ofTheProcess()).toEqual(before);
});

it('warns of the connections and requests that the drain has cut off', async () => {
  const asked = vi.fn();
  @Controller()
  class Endless {
    @Get() wait() {
      asked();
      return new Promise<void>(() => {});
    }
  }
  @Module({ controllers: [Endless] })
  class App {}
  const warning = vi.fn();
  const runtime = await runStandalone(
    () => create(App),
    resolveOptions({
      ...OPTIONS,
      shutdown: { drainTimeoutMs: 1 },
      log: { level: 'silent' },
      on: { warning },
    }),
  );
  const cut = expect(fetch(runtime.url!)).rejects.toThrow('fetch failed');
  await vi.waitFor(() => expect(asked).toHaveBeenCalled());
  await runtime.shutdown();
  await cut;

  expect(warning.mock.calls).toEqual([
    [{ message: 'the drain destroyed 1 connection with 1 request' }],
  ]);
});

it('exports the last telemetry before it exits on SIGTERM', async () => {
  silence();
  const steps: unknown[] = [];
  const shutdown = async () => void steps.push('telemetry');
  trace.setGlobalTracerProvider({ shutdown } as unknown as TracerProvider);
  onTestFinished(() => trace.disable());
  const others = process.listeners('SIGTERM');
  vi.spyOn(process, 'exit').mockImplementation(((code: unknown) => steps.push(code)) as never);
  await runStandalone(() => create(), options);

  const [ours] = process.listeners('SIGTERM').filter((each) => !others.includes(each));
  ours!('SIGTERM');

  await vi.waitFor(() => expect(steps).toEqual(['telemetry', 0]));
});

it('reports a warning of the app to the listeners of bootstrap()', async () => {
  silence();
  const warning = vi.fn();
  const runtime = await runStandalone(() => create(), { ...options, on: { warning } });

  currentLink()!.warn('a package has a problem');
  await runtime.shutdown();

  expect(warning.mock.calls).toEqual([[{ message: 'a package has a problem' }]]);
});

it.each([
  ['is kept for longer than a proxy does, by default', {}, undefined, 65_000],
  ['is kept for keepAliveTimeoutMs', { keepAliveTimeoutMs: 90_000 }, undefined, 90_000],
  ['is kept for as long as the app has set', { keepAliveTimeoutMs: 90_000 }, 7_000, 7_000],
] as const)('an idle connection %s', async (_, given, ofTheApp, expected) => {
  silence();
  const app = await create();
  if (ofTheApp !== undefined) app.getHttpServer().keepAliveTimeout = ofTheApp;
  const runtime = await runStandalone(async () => app, resolveOptions({ ...OPTIONS, ...given }));
  onTestFinished(() => runtime.shutdown().then(() => {}));
  expect(app.getHttpServer().keepAliveTimeout).toBe(expected);
});
