// Runs the worker of the tests of @socket.io/cluster-adapter, as it is, in the workers of a cluster.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { deserialize, serialize } from 'node:v8';
import { compileFunction } from 'node:vm';
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ClusterModule } from 'nestjs-cluster';
import { ClusterIoAdapter } from '@nestjs-cluster/socket.io';

/** The `process` of the worker: its messages go through a socket to the test. */
function channelToTest() {
  const { slot } = JSON.parse(process.env.NESTJS_CLUSTER_WORKER);
  const socket = connect(process.env.SUITE_PORT, '127.0.0.1').unref();
  socket.on('error', () => {}).write(`${slot}\n`);
  const lines = createInterface({ input: socket });
  return {
    env: { PORT: '0' },
    on: (event, listener) => {
      lines.on('line', (line) => listener(deserialize(Buffer.from(line, 'base64'))));
    },
    send: (message) => socket.write(`${serialize(message).toString('base64')}\n`),
  };
}

function runWorker(io) {
  const requireHere = createRequire(process.env.SUITE_WORKER);
  const factory = io.adapter(); // the worker sets none, because `createAdapter()` below gives none
  io.adapter = () => factory;
  const parts = {
    http: { createServer: () => ({ listen() {} }) },
    'socket.io': {
      Server: class {
        constructor() {
          return io;
        }
      },
    },
    '..': { createAdapter() {} },
  };
  const code = readFileSync(process.env.SUITE_WORKER, 'utf8');
  const worker = compileFunction(code, ['require', 'process']);
  worker((name) => parts[name] ?? requireHere(name), channelToTest());
}

async function createApp() {
  class AppModule {}
  Module({ imports: [ClusterModule.forRoot()] })(AppModule);
  const app = await NestFactory.create(AppModule, { logger: ['error'] });
  runWorker(new ClusterIoAdapter(app).createIOServer(0));
  return app;
}

await ClusterModule.bootstrap(createApp, JSON.parse(process.env.TEST_OPTIONS));
