import { Controller, Get } from '@nestjs/common';
import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import type { BlockCause } from '../../../../src/contract/snapshot/index.js';
import { handlersOf } from '../../../../src/observe/endpoints/controller-routes.js';
import { BlockMetrics } from '../../../../src/observe/metrics/block-metrics.js';
import { samplesOf } from '../../support/metric-families.js';

const COUNT = 'nestjs_cluster_event_loop_blocks_total';
const SECONDS = 'nestjs_cluster_event_loop_block_seconds_total';

@Controller('cats')
class Cats {
  @Get(':id')
  find(): void {}
  @Get()
  list(): void {}
  feed(): void {}
}

const HANDLERS = handlersOf({ getControllers: () => [{ metatype: Cats }] as never });

function start({ known = [] as string[], prefix = '', worker }: StartOptions = {}) {
  const metrics = new BlockMetrics(
    prefix,
    { readTemplate: ({ url }) => url!, known: () => known, handlers: () => HANDLERS },
    worker,
  );
  return {
    samples: () => samplesOf(metrics.families()),
    block: (methods: string[], routes: string[], ms = 100) => {
      const requests = routes.map((url) => ({ url }) as IncomingMessage);
      metrics.add(ms, { methods, requests } satisfies BlockCause);
    },
  };
}

interface StartOptions {
  known?: string[];
  prefix?: string;
  worker?: number;
}

it('finds the handlers of a controller with their paths, and no other method', () => {
  expect([...HANDLERS].filter(([, paths]) => paths.length > 0)).toEqual([
    ['Cats.find', ['/cats/:id']],
    ['Cats.list', ['/cats/']],
  ]);
});

describe('a block of the event loop', () => {
  it.each<[string, string[], string[], string]>([
    ['the handler on the stack', ['Cats.find'], ['/dogs', '/cats/:id'], '/cats/:id'],
    ['its whole path', ['Cats.find'], ['/dogs', '/api/v1/cats/:id'], '/api/v1/cats/:id'],
    ['the innermost', ['Db.run', 'Cats.list', 'Cats.find'], ['/cats/:id', '/cats'], '/cats'],
    ['a handler whose request is over', ['Cats.list'], ['/dogs'], '/api/cats'],
    ['the newest request, without a handler', ['Cats.feed', 'Db.run'], ['/a', '/b'], '/a'],
    ['the newest request, of a handler without a route', ['Cats.feed'], ['/a'], '/a'],
    ['no request', ['Db.run'], [], 'other'],
    ['no route of a client', [], ['unmatched'], 'unmatched'],
  ])('counts under %s', (_what, methods, routes, route) => {
    const { block, samples } = start({ known: ['/api/cats', '/dogs'] });
    block(methods, routes);
    const counted = Object.entries(samples()).filter(([, value]) => Number(value) > 0);
    expect(counted).toEqual([
      [`${COUNT}{route="${route}"}`, 1],
      [`${SECONDS}{route="${route}"}`, 0.1],
    ]);
  });

  it('adds up, and each route begins at 0: a first block has a rate', () => {
    const { block, samples } = start({ known: ['/cats', '/dogs'] });
    block([], ['/cats'], 100);
    block([], ['/cats'], 150);
    expect(samples()).toEqual({
      [`${COUNT}{route="other"}`]: 0,
      [`${COUNT}{route="/cats"}`]: 2,
      [`${COUNT}{route="/dogs"}`]: 0,
      [`${SECONDS}{route="other"}`]: 0,
      [`${SECONDS}{route="/cats"}`]: 0.25,
      [`${SECONDS}{route="/dogs"}`]: 0,
    });
  });

  it('has the prefix of the app, and the worker where workers are shown apart', () => {
    const { samples } = start({ prefix: 'app_', worker: 2 });
    expect(Object.keys(samples())).toEqual([
      `app_${COUNT}{route="other",worker="2"}`,
      `app_${SECONDS}{route="other",worker="2"}`,
    ]);
  });
});
