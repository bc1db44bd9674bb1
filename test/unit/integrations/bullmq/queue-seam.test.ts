import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ClusterModule } from '../../../../src/module/cluster.module.js';
import {
  CpuBound,
  REMOTE_RUNNER,
  type RemoteRunner,
  type RemoteSituation,
} from '../../../../src/offload/index.js';

beforeEach(() => void vi.stubEnv('CLUSTER_OFFLOAD', 'inline'));
afterEach(() => void vi.unstubAllEnvs());

class Reports {
  @CpuBound({ queue: 'reports' })
  async made(n: number): Promise<number> {
    return n;
  }

  @CpuBound()
  async near(n: number): Promise<number> {
    return n;
  }
}
Injectable()(Reports);

/** Answers by itself. */
class FakeRunner implements RemoteRunner {
  readonly metrics = [];
  situation: RemoteSituation | undefined;
  closed = false;
  async start(situation: RemoteSituation): Promise<void> {
    this.situation = situation;
  }
  async submit(task: { name: string }, args: readonly unknown[]): Promise<unknown> {
    return [task.name, ...args];
  }
  async close(): Promise<void> {
    this.closed = true;
  }
}

async function start(runner: FakeRunner | undefined) {
  class QueueModule {}
  Module({
    providers: [{ provide: REMOTE_RUNNER, useValue: runner }],
    exports: [REMOTE_RUNNER],
  })(QueueModule);
  class AppModule {}
  Module({
    imports: [
      ClusterModule.forRoot({
        health: false,
        metrics: false,
        offload: { threads: 3 },
      }),
      ...(runner ? [{ module: QueueModule, global: true }] : []),
    ],
    providers: [Reports],
  })(AppModule);
  const app = await NestFactory.createApplicationContext(AppModule, {
    logger: false,
    abortOnError: false,
  });
  return { app, reports: app.get(Reports) };
}

describe('a method with a queue', () => {
  it('is called where the queue says, and one without is not', async () => {
    const runner = new FakeRunner();
    const { app, reports } = await start(runner);
    expect(await reports.made(7)).toEqual(['Reports.made', 7]);
    expect(await reports.near(7)).toBe(7);
    expect(runner.situation!.tasks.map(({ name, queue }) => [name, queue])).toEqual([
      ['Reports.made', 'reports'],
    ]);
    expect(runner.situation).toMatchObject({ threads: 3, measured: false });
    const [task] = runner.situation!.tasks;
    expect(await runner.situation!.local.submit(task!, [8], undefined)).toBe(8);
    await app.close();
    expect(runner.closed).toBe(true);
  });

  it('is refused at the start of an app without queues, with the remedy', async () => {
    await expect(start(undefined)).rejects.toThrow(
      'Reports.made has queue: "reports", and the app has no queues; add ClusterQueueModule.forRoot({ connection }) of nestjs-cluster/bullmq',
    );
  });

  it('names its queue as a key of Redis can', () => {
    expect(() => CpuBound({ queue: 'a:b' })(Reports.prototype, 'x', { value() {} })).toThrow(
      /queue: "a:b" is not allowed/,
    );
  });
});
