import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ClusterModule, CpuBound } from 'nestjs-cluster';
import { AsyncLocalStorage } from 'node:async_hooks';
import { threadId } from 'node:worker_threads';
import { Registry } from 'prom-client';
import { expect, it, onTestFinished, vi } from 'vitest';

// As tests of an app start and close it, again and again in one process.

const APPS = 30;

@Controller()
class Numbers {
  @CpuBound() @Get() get() {
    return threadId;
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
  const info = vi.spyOn(console, 'info').mockReturnValue();
  onTestFinished(() => info.mockRestore());
  const left = unended(AsyncLocalStorage.prototype, 'enterWith', 'disable');
  const timers = () => process.getActiveResourcesInfo().filter((type) => type === 'Timeout').length;
  const before = timers();
  for (let i = 0; i < APPS; i += 1) {
    const app = await NestFactory.create(AppModule, { logger: false });
    await app.listen(0, '127.0.0.1');
    expect(await (await fetch(await app.getUrl())).text()).toBe('0');
    await app.close();
  }
  expect(left.size).toBe(0);
  expect(timers()).toBeLessThan(before + APPS);
  expect(info).toHaveBeenCalledTimes(APPS);
  expect(info).toHaveBeenLastCalledWith(
    expect.stringContaining('methods run on the event loop, because this is a Vitest run'),
  );
});
