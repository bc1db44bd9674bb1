import 'reflect-metadata';
import type { INestApplication, Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { join } from 'node:path';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { Calculation, Table } from '../fixtures/cpu-bound-app/calculation.js';
import { ReportController } from '../fixtures/cpu-bound-app/report.controller.js';
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
  const { AppModule } = (await import('../fixtures/cpu-bound-app/app.module.js')) as {
    AppModule: Type;
  };
  const app = await NestFactory.create(AppModule, { logger: false });
  onTestFinished(() => app.close());
  return app;
}

describe('a unit test', () => {
  it('calls a method of a class with @CpuBound() as it is', async () => {
    expect(new ReportController().above(3, 'tester')).toEqual({
      threadId: 0,
      given: [3, 'tester'],
    });
    expect(await new Calculation(new Table()).sum()).toEqual({ threadId: 0, given: [6] });
    expect(() => new ReportController().missing()).toThrow('no such report');
  });
});

describe('a test of a whole app', () => {
  it('runs @CpuBound() methods on its own event loop, and says so in one line', async () => {
    const info = vi.spyOn(console, 'info').mockImplementation(() => {});
    const app = await createApp({ CLUSTER_OFFLOAD: '' });
    await app.listen(0, '127.0.0.1');

    expect((await getJson(await app.getUrl(), '/sum')).body).toEqual({ threadId: 0, given: [6] });
    expect(info.mock.calls).toEqual([
      [
        'ClusterModule: @CpuBound() methods run on the event loop, because this is a test of Vitest; set CLUSTER_OFFLOAD=inline to confirm it, or CLUSTER_OFFLOAD=threads for threads',
      ],
    ]);
  });

  it('runs @CpuBound() methods on its own event loop with CLUSTER_OFFLOAD=inline', async () => {
    const app = await createApp({ CLUSTER_OFFLOAD: 'inline' });
    await app.listen(0, '127.0.0.1');
    const url = await app.getUrl();

    expect(await getJson(url, '/report/below/7')).toEqual({
      status: 202,
      body: { threadId: 0, given: [7, 'below'] },
    });
    expect((await getJson(url, '/sum')).body).toEqual({ threadId: 0, given: [6] });
    expect((await getJson(url, '/report/missing')).body.message).toBe('no such report');
    expect((await getJson(url, '/health')).body.details.offload.status).toBe('up');
  });

  it('that uses threads is told what tests do', async () => {
    const app = await createApp({ CLUSTER_OFFLOAD: 'threads', CLUSTER_THREADS: '1' });

    const failure = await app.init().then(
      () => 'it started',
      (error: Error) => `${error.name}: ${error.message}`,
    );

    const file = join(import.meta.dirname, '../fixtures/cpu-bound-app/report.controller.ts');
    expect(failure).toContain(
      'ClusterConfigurationError: @CpuBound() cannot work here: ' +
        `a thread cannot import ${file}, which declares ReportController.above, ReportController.below, between, `,
    );
    expect(failure).toContain(
      'It is TypeScript, and threads run what Node can: start the app from the output of tsc or SWC, or by a loader that works in threads (tsx on Node 22 or later), ' +
        'or set CLUSTER_OFFLOAD=inline to run @CpuBound() methods on the event loop, as tests do',
    );
  });
});
