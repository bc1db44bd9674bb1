import 'reflect-metadata';
import { channel } from 'node:diagnostics_channel';
import type { EventEmitter } from 'node:events';
import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { CreateAppContext } from '../../../../src/bootstrap/cluster-runtime.interface.js';
import { currentLink } from '../../../../src/contract/snapshot/current-link.js';
import { runStandalone } from '../../../../src/bootstrap/roles/run-standalone.js';
import { resolveOptions } from '../../../../src/contract/options/index.js';

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

class AppModule {}
Module({})(AppModule);

async function startAndShutDown(): Promise<void> {
  const runtime = await runStandalone(async () => {
    const app = await NestFactory.create(AppModule, { logger: false });
    return app.enableShutdownHooks(['SIGTERM', 'SIGUSR2']);
  }, options);
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

it('leaves nothing behind where an app is started and shut down many times in one process', async () => {
  const begun = vi.spyOn(globalThis, 'setInterval');
  const ended = vi.spyOn(globalThis, 'clearInterval');
  for (const stream of [process.stdout, process.stderr]) {
    vi.spyOn(stream, 'write').mockReturnValue(true);
  }
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

it('tells the function that creates the app what ClusterService says: slot 0', async () => {
  onTestFinished(() => void vi.restoreAllMocks());
  for (const stream of [process.stdout, process.stderr]) {
    vi.spyOn(stream, 'write').mockReturnValue(true);
  }
  const createApp = vi.fn((_context: CreateAppContext) =>
    NestFactory.create(AppModule, { logger: false }),
  );
  const runtime = await runStandalone(createApp, options);
  const { identity } = currentLink()!;
  await runtime.shutdown();

  expect(identity).toEqual({ slot: 0, pid: process.pid, generation: 0 });
  expect(createApp.mock.calls).toEqual([[{ worker: identity }]]);
});

it('leaves nothing of itself behind where the app cannot be created', async () => {
  const before = ofTheProcess();
  const failing = runStandalone(() => Promise.reject(new Error('no database')), options);
  await expect(failing).rejects.toThrow('no database');
  expect(ofTheProcess()).toEqual(before);
});

it('says how many connections and requests the drain has cut off', async () => {
  const asked = vi.fn();
  class Endless {
    wait() {
      asked();
      return new Promise<void>(() => {});
    }
  }
  Controller()(Endless);
  Get()(Endless.prototype, 'wait', Object.getOwnPropertyDescriptor(Endless.prototype, 'wait')!);
  class App {}
  Module({ controllers: [Endless] })(App);
  const warning = vi.fn();
  const runtime = await runStandalone(
    () => NestFactory.create(App, { logger: false }),
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
    [{ message: 'in the end destroyed 1 connections with 1 requests' }],
  ]);
});

it('reports a warning of the app to the listeners of bootstrap()', async () => {
  const warning = vi.fn();
  const create = () => NestFactory.create(AppModule, { logger: false });
  const runtime = await runStandalone(create, { ...options, on: { warning } });

  currentLink()!.warn('a package has a problem');
  await runtime.shutdown();

  expect(warning.mock.calls).toEqual([[{ message: 'a package has a problem' }]]);
});
