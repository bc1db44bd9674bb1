// node make-code-cache.mjs LOADER: makes this Node's code cache for the bundles in LOADER's folder.
// It first starts an app on each adapter and sends it a request, so that the cache also has the
// functions that serving a request needs.
import { renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(process.argv[2]);
const run = require(process.argv[2]);
run.made = new Map();

require('reflect-metadata');
require('rxjs/operators');
require('prom-client');
require('@nestjs/terminus');
const { Controller, Get, Module } = require('@nestjs/common');
const { NestFactory } = require('@nestjs/core');
const { ExpressAdapter } = require('@nestjs/platform-express');
const { FastifyAdapter } = require('@nestjs/platform-fastify');

class AppController {
  hello() {
    return 'Hello World!';
  }
}
Controller()(AppController);
Get('hello')(
  AppController.prototype,
  'hello',
  Object.getOwnPropertyDescriptor(AppController.prototype, 'hello'),
);
class AppModule {}
Module({ controllers: [AppController] })(AppModule);

for (const adapter of [new ExpressAdapter(), new FastifyAdapter()]) {
  const app = await NestFactory.create(AppModule, adapter, { logger: ['error'] });
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  await (await fetch(`${url}/hello`)).text();
  await app.close();
}

for (const [file, script] of run.made) {
  // Two runs may make it at once.
  writeFileSync(`${file}.${process.pid}`, script.createCachedData());
  renameSync(`${file}.${process.pid}`, file);
}
process.exit();
