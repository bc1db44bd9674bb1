import 'reflect-metadata';
import { Controller, Get, Injectable, Post, Req, type Type } from '@nestjs/common';
import { expect, it } from 'vitest';
import type { MethodList } from '../../../../src/contract/snapshot/index.js';
import { listMethods } from '../../../../src/observe/endpoints/method-list.js';
import { CpuBound, type Member } from '../../../../src/offload/index.js';

const memberOf = (type: Type, more: Partial<Member> = {}): Member => ({
  type,
  instance: null,
  isController: false,
  isStatic: true,
  injected: false,
  ...more,
});

class Base {
  inherited() {}
}

@Injectable()
class Prices extends Base {
  get total(): never {
    throw new Error('a getter is not run');
  }
  compute() {
    return 'two\nlines';
  }
}

@Controller('orders')
class Orders {
  @Get(':id') find() {}
  @Post() create(@Req() _request: unknown) {}
  @CpuBound() @Get('report') report() {}
  helper() {}
}

function list(...members: Member[]) {
  const [text, ...functions] = listMethods(members, false);
  const { methods, extents } = JSON.parse(text) as MethodList;
  return { methods, extents, functions };
}

it('lists the methods of handlers and providers, with their routes', () => {
  const { methods } = list(memberOf(Orders, { isController: true }), memberOf(Prices));
  expect(methods.map(({ name, route, cpuBound }) => [name, route, cpuBound])).toEqual([
    ['Orders.find', 'GET /orders/:id', false],
    ['Orders.create', 'POST /orders/', false],
    ['Orders.report', 'GET /orders/report', true],
    ['Orders.helper', null, false],
    ['Prices.compute', null, false],
    ['Prices.inherited', null, false],
  ]);
});

it('says why @CpuBound() cannot work, as for a method that has it', () => {
  const refusalsOf = (more: Partial<Member>) =>
    Object.fromEntries(
      list(memberOf(Orders, more), memberOf(Prices)).methods.map((each) => [
        each.name.split('.')[1],
        each.refusal,
      ]),
    );
  expect(refusalsOf({})).toEqual({
    find: null,
    create: expect.stringContaining('takes @Req(), which cannot leave the event loop'),
    report: null,
    helper: null,
    compute: null,
    inherited: expect.stringContaining('is inherited from Base'),
  });
  expect(refusalsOf({ injected: true })).toMatchObject({
    find: expect.stringContaining('offload'),
  });
});

it('numbers the functions with the code, and gives the length of their text', () => {
  const { methods, extents, functions } = list(memberOf(Prices), memberOf(Orders));
  const compute = methods.find(({ name }) => name === 'Prices.compute')!;
  const report = methods.find(({ name }) => name === 'Orders.report')!;
  const { compute: code } = Object.getOwnPropertyDescriptors(Prices.prototype);
  expect(functions[compute.code]).toBe(code.value);
  expect(functions[compute.declaredBy]).toBe(Prices);
  // The decorator has put another function in its place.
  expect(functions[report.code]).not.toBe(Reflect.get(Orders.prototype, 'report'));
  const lines = String(code.value).split('\n');
  expect(extents[compute.code]).toEqual([lines.length - 1, lines.at(-1)!.length]);
  expect(extents).toHaveLength(functions.length);
});
