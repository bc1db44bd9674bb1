import type { INestApplication } from '@nestjs/common';
import { environment } from './environment.js';

export async function createApp(): Promise<INestApplication> {
  if (environment.failBoot) {
    throw new Error('The app does not start because SAMPLE_FAIL_BOOT is set');
  }
  const app = await createOnAdapter();
  if (environment.shared) {
    const { ClusterIoAdapter } = await import('@nestjs-cluster/socket.io');
    app.useWebSocketAdapter(new ClusterIoAdapter(app));
  }
  return app;
}

async function createOnAdapter(): Promise<INestApplication> {
  const { AppModule } = await import('./app.module.js');
  if (environment.adapter === 'fastify') {
    const { createFastifyApp } = await import('./adapters/fastify-app.js');
    return createFastifyApp(AppModule);
  }
  if (environment.adapter === 'node') {
    const { createNodeApp } = await import('./adapters/node-app.js');
    return createNodeApp(AppModule);
  }
  const { createExpressApp } = await import('./adapters/express-app.js');
  return createExpressApp(AppModule);
}
