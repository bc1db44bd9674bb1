import { Logger } from '@nestjs/common';
import { expect, it, vi } from 'vitest';
import { HealthEndpoints } from '../../../../src/observe/health/health.endpoints.js';
import { STATS } from '../../support/fake-worker.js';

const UP = { status: 'up' };
const OWN = { cluster: UP, eventLoop: UP, memory: UP, offload: UP };

/** Asks `/health` of an app with these indicators. */
async function health(showsDetails: boolean, details: boolean) {
  const check = async (indicators: readonly (() => unknown)[]) => {
    const all = Object.assign({}, ...(await Promise.all(indicators.map((each) => each()))));
    const { database, ...info } = all;
    return { status: 'error', info, error: { database }, details: all };
  };
  const of = (key: string) => ({ check: () => ({ [key]: { ...UP, pid: 4711 } }) });
  const link = { accepting: true, stats: () => STATS, showsDetails };
  const endpoints = new HealthEndpoints(
    { load: async () => ({ check }), knowsDegraded: true } as never,
    of('cluster') as never,
    of('eventLoop') as never,
    of('offload') as never,
    link as never,
    {} as never,
  );
  const options = {
    path: '/health',
    details,
    minReady: 1,
    indicators: [() => ({ database: { status: 'down', host: 'db.internal' } })],
  } as const;
  await endpoints.prepare(options as never);
  return new Promise<string>((resolve) => {
    const adapter = {
      getType: () => 'express',
      setHeader: () => {},
      reply: (_response: unknown, body: string) => resolve(body),
      get: (path: string, handle: (request: object, response: object) => void) =>
        path === '/health' && handle({ headers: {} }, {}),
    };
    endpoints.mount(adapter as never, options as never);
  });
}

it('has the statuses of all indicators with health.details: false', async () => {
  const error = { database: { status: 'down' } };
  const details = { ...OWN, ...error };
  expect(JSON.parse(await health(true, false))).toEqual({
    status: 'error',
    info: OWN,
    error,
    details,
  });
});

it.each([true, false])(
  "keeps the names of the app's indicators off the port of the app with expose: 'admin', and logs which is down (details: %s)",
  async (details) => {
    const log = vi.spyOn(Logger.prototype, 'error').mockImplementation(() => {});
    const report = { status: 'error', info: OWN, error: {}, details: OWN };
    expect(JSON.parse(await health(false, details))).toEqual(report);
    expect(log.mock.calls).toEqual([['health indicator "database" is down']]);
  },
);
