import 'reflect-metadata';
import type { INestApplication, Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { getJson } from '../support/http-client.js';

// As users of the package test their apps: TypeScript, compiled on the fly, in the process of vitest.

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  vi.resetModules();
});

/** forRoot() reads the environment, when its module is imported. */
async function createApp(env: Readonly<Record<string, string>>): Promise<INestApplication> {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  vi.resetModules();
  const { AppModule } = (await import('../fixtures/cpu-bound-app.js')) as {
    AppModule: Type;
  };
  const app = await NestFactory.create(AppModule, { logger: false });
  onTestFinished(() => app.close());
  return app;
}

it.each([
  {
    mode: '',
    lines: [
      'ClusterModule: @CpuBound() methods run on the event loop, because this is a Vitest run; set CLUSTER_OFFLOAD=inline to hide this line, or CLUSTER_OFFLOAD=threads to use threads',
    ],
  },
  { mode: 'inline', lines: [] },
])('an app in a test runs @CpuBound() methods on its event loop: "$mode"', async (how) => {
  const info = vi.spyOn(console, 'info').mockImplementation(() => {});
  const app = await createApp({ CLUSTER_OFFLOAD: how.mode });
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();

  expect((await getJson(url, '/report/sum')).body).toEqual({ threadId: 0, given: 6 });
  expect(await getJson(url, '/report/above/7')).toEqual({
    status: 202,
    body: { threadId: 0, given: 7 },
  });
  expect((await getJson(url, '/report/missing')).body.message).toBe('no such report');
  expect(info.mock.calls.flat()).toEqual(how.lines);
});

it('an app in a test that uses threads is told to run inline', async () => {
  const app = await createApp({ CLUSTER_OFFLOAD: 'threads', CLUSTER_THREADS: '1' });
  await expect(app.init()).rejects.toThrow(
    /a thread cannot import \S+cpu-bound-app\.ts, which declares .*ReportController\.above.*, .*Node cannot load this TypeScript file: .*or set CLUSTER_OFFLOAD=inline/,
  );
});
