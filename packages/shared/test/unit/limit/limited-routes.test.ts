import 'reflect-metadata';
import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  Get,
  Injectable,
  Module,
  type NestInterceptor,
  Param,
  UseInterceptors,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { from, lastValueFrom } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import { ClusterLimit } from '../../../src/limit/index.js';
import { eventually } from '../../../../../test/support/eventually.js';
import { forgetHub } from '../support/hub-workers.js';

afterEach(forgetHub);

/** Ends the request that runs, if there is one. */
let end: (() => void) | undefined;

/** As docs/limits.md has it. */
@Injectable()
class TenantLimit implements NestInterceptor {
  private readonly limit = new ClusterLimit('tenant', { max: 1, maxWaiting: 0 });

  intercept(context: ExecutionContext, next: CallHandler) {
    const http = context.switchToHttp();
    const request = http.getRequest<{ params: { tenant: string }; place?: AbortSignal }>();
    const handle = (signal: AbortSignal) => {
      request.place = signal;
      return lastValueFrom(next.handle(), { defaultValue: undefined });
    };
    return from(this.limit.run(request.params.tenant, handle, http.getResponse()));
  }
}

@Controller()
@UseInterceptors(TenantLimit)
class Reports {
  @Get(':tenant/:wait')
  report(@Param('wait') wait: string) {
    return wait === 'slow' ? new Promise((resolve) => (end = () => resolve('slow'))) : 'quick';
  }
}

@Module({ controllers: [Reports], providers: [TenantLimit] })
class AppModule {}

describe.each([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('an interceptor with a limit, with %s', (_, createAdapter) => {
  it('answers 503 with Retry-After to a tenant that has all its places, and serves others', async () => {
    const app = await NestFactory.create(AppModule, createAdapter(), { logger: false });
    await app.listen(0, '127.0.0.1');
    const get = async (path: string) => {
      const response = await fetch(`${await app.getUrl()}${path}`);
      return [response.status, response.headers.get('retry-after'), await response.text()];
    };
    end = undefined;
    const slow = get('/acme/slow');
    await eventually('it runs', () => end !== undefined);
    expect(await get('/acme/quick')).toEqual([503, '1', expect.stringContaining('no free place')]);
    expect(await get('/other/quick')).toEqual([200, null, 'quick']);
    end!();
    expect(await slow).toEqual([200, null, 'slow']);
    expect(await get('/acme/quick')).toEqual([200, null, 'quick']);
    await app.close();
  });
});
