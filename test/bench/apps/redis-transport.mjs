// Nest's transport by Redis. ROLE (web or consumer), PORT, HOST, REDIS_HOST, REDIS, BURN_LOOPS
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ClientProxyFactory, Transport } from '@nestjs/microservices';
import http from 'node:http';
import { firstValueFrom } from 'rxjs';
import { BurnController } from './redis-transport.controller.mjs';

const transport = {
  transport: Transport.REDIS,
  options: { host: process.env.REDIS_HOST, port: Number(process.env.REDIS) },
};

if (process.env.ROLE === 'consumer') {
  class AppModule {}
  Module({ controllers: [BurnController] })(AppModule);
  const logger = ['error', 'warn'];
  await (await NestFactory.createMicroservice(AppModule, { ...transport, logger })).listen();
} else {
  const client = ClientProxyFactory.create(transport);
  await client.connect();
  http
    .createServer((_request, response) => {
      firstValueFrom(client.send('burn', {})).then(
        (result) => response.end(JSON.stringify(result)),
        () => response.writeHead(500).end(),
      );
    })
    .listen(Number(process.env.PORT), process.env.HOST);
}
