// An app with a gateway on ws that echoes each message. SUITE_PLAIN=1 starts it as plain Nest.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { WsAdapter } from '@nestjs/platform-ws';
import { WebSocketGateway } from '@nestjs/websockets';
import { ClusterModule } from 'nestjs-cluster';

const isPlain = process.env.SUITE_PLAIN === '1';

class EchoGateway {
  handleConnection(client) {
    client.on('message', (data, isBinary) => client.send(data, { binary: isBinary }));
  }
}
WebSocketGateway({ perMessageDeflate: true, maxPayload: 2 ** 25 })(EchoGateway);

async function createApp() {
  class AppModule {}
  Module({ imports: isPlain ? [] : [ClusterModule.forRoot()], providers: [EchoGateway] })(
    AppModule,
  );
  const app = await NestFactory.create(AppModule, { logger: false });
  return app.useWebSocketAdapter(new WsAdapter(app));
}

if (isPlain) {
  const app = await createApp();
  await app.listen(0, '127.0.0.1');
  console.log(app.getHttpServer().address().port);
} else {
  await ClusterModule.bootstrap(createApp, JSON.parse(process.env.TEST_OPTIONS));
}
