// Threads import this file for Tasks: it declares, and does nothing else.
import 'reflect-metadata';
import { Body, Controller, Get, Param, ParseIntPipe, Post, Sse } from '@nestjs/common';
import { CpuBound } from 'nestjs-cluster';
import { interval, map } from 'rxjs';

const EVENT_EVERY_MS = 50;

/** Applies decorators as TypeScript's compiler does: the app is plain JavaScript. */
function decorate(decorators, target, key) {
  let descriptor = Object.getOwnPropertyDescriptor(target, key);
  for (const apply of decorators.toReversed()) {
    descriptor = apply(target, key, descriptor) ?? descriptor;
  }
  Object.defineProperty(target, key, descriptor);
}

export class Routes {
  whoami() {
    return { pid: process.pid };
  }
  echo(body) {
    return body;
  }
  events() {
    return interval(EVENT_EVERY_MS).pipe(map((count) => ({ data: { count } })));
  }
}
Controller()(Routes);
decorate([Get('whoami')], Routes.prototype, 'whoami');
decorate([Post('echo')], Routes.prototype, 'echo');
decorate([Sse('events')], Routes.prototype, 'events');
Body()(Routes.prototype, 'echo', 0);

export class Tasks {
  fibonacci(n) {
    return { n, value: fibonacci(n) };
  }
}
Controller('tasks')(Tasks);
decorate([Get('fibonacci/:n'), CpuBound()], Tasks.prototype, 'fibonacci');
Param('n', ParseIntPipe)(Tasks.prototype, 'fibonacci', 0);

function fibonacci(n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
