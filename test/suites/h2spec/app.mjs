// An app on Fastify with HTTP/2 in clear text.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { controller } from '../../fixtures/declare.mjs';
import { serve } from '../serve.mjs';

await serve((imports) => {
  class AppModule {}
  const controllers = [controller({ 'GET ': () => 'Hello World!', 'POST ': () => 'Hello World!' })];
  Module({ imports, controllers })(AppModule);
  return NestFactory.create(AppModule, new FastifyAdapter({ http2: true }), { logger: ['error'] });
});
