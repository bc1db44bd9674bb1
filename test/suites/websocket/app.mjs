// An app with a gateway on ws that echoes each message.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { WsAdapter } from '@nestjs/platform-ws';
import { WebSocketGateway } from '@nestjs/websockets';
import { serve } from '../serve.mjs';

class EchoGateway {
  handleConnection(client) {
    client.on('message', (data, isBinary) => client.send(data, { binary: isBinary }));
  }
}
WebSocketGateway({ perMessageDeflate: true, maxPayload: 2 ** 25 })(EchoGateway);

await serve(async (imports) => {
  class AppModule {}
  Module({ imports, providers: [EchoGateway] })(AppModule);
  const app = await NestFactory.create(AppModule, { logger: false });
  return app.useWebSocketAdapter(new WsAdapter(app));
});
