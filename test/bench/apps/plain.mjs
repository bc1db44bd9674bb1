// The sample app as it is run by what it is compared with: the same routes, adapters, compression
// and body limit, without this package. Nest's own shutdown hooks are on, as pm2 and Nest advise.
//
// ADAPTER      express (default) or fastify
// PORT         on 127.0.0.1
// REUSE_PORT   1: other processes listen on the same port
import 'reflect-metadata';
import { PlainModule } from './plain.module.mjs';

const port = Number(process.env.PORT);
const app = await createApp();
app.enableShutdownHooks();
await app.listen({
  port,
  host: '127.0.0.1',
  ...(process.env.REUSE_PORT === '1' && { reusePort: true }),
});
console.log(`plain app of process ${process.pid} listens on port ${port}`);
// pm2 waits for it before it ends the process that this one replaces.
process.send?.('ready');

/** Watt calls it before it ends a worker. */
export const close = () => app.close();

async function createApp() {
  if (process.env.ADAPTER === 'fastify') {
    const { createFastifyApp } = await import('../../../sample-app/dist/adapters/fastify-app.js');
    return createFastifyApp(PlainModule);
  }
  const { createExpressApp } = await import('../../../sample-app/dist/adapters/express-app.js');
  return createExpressApp(PlainModule);
}
