import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ClusterModule, CpuBound } from 'nestjs-cluster';
import { AsyncLocalStorage } from 'node:async_hooks';
import { Registry } from 'prom-client';
import { expect, it, onTestFinished, vi } from 'vitest';

// As tests of an app start and close it, again and again in one process.

const APPS = 30;

// Before forRoot() is called.
vi.stubEnv('CLUSTER_OFFLOAD', 'inline');

@Controller()
class Numbers {
  @CpuBound() @Get() get() {
    return 1;
  }
}

@Module({
  imports: [ClusterModule.forRoot({ metrics: { registry: new Registry() } })],
  controllers: [Numbers],
})
class AppModule {}

type Method = (...args: unknown[]) => unknown;

/** @returns the objects on which `begin` was called, but `end` was not. */
function unended(prototype: object, begin: string, end: string): ReadonlySet<unknown> {
  const left = new Set<unknown>();
  const follow = (name: string, note: (one: unknown) => void) => {
    const method = Reflect.get(prototype, name) as Method;
    Reflect.set(prototype, name, function (this: unknown, ...args: unknown[]) {
      note(this);
      return method.apply(this, args);
    });
    onTestFinished(() => void Reflect.set(prototype, name, method));
  };
  follow(begin, (one) => left.add(one));
  follow(end, (one) => left.delete(one));
  return left;
}

it('leaves no timer and no context behind, of many apps in one process that were closed', async () => {
  const left = unended(AsyncLocalStorage.prototype, 'enterWith', 'disable');
  const timers = () => process.getActiveResourcesInfo().filter((type) => type === 'Timeout').length;
  const before = timers();
  for (let i = 0; i < APPS; i += 1) {
    const app = await NestFactory.create(AppModule, { logger: false });
    await app.listen(0, '127.0.0.1');
    await (await fetch(await app.getUrl())).text();
    await app.close();
  }
  expect(left.size).toBe(0);
  expect(timers()).toBeLessThan(before + APPS);
});
