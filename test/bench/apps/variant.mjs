// The sample app as a cluster, without some of what it has.
//
// ADAPTER, PORT    as of the sample app
// MODULE_OPTIONS   further ones of ClusterModule.forRoot(), JSON
// CPU_BOUND        0: without the modules that have @CpuBound() methods
import { bootstrap } from 'nestjs-cluster/bootstrap';

await bootstrap(
  async () => {
    const { VariantModule } = await import('./variant.module.mjs');
    if (process.env.ADAPTER === 'fastify') {
      const { createFastifyApp } = await import('../../../sample-app/dist/adapters/fastify-app.js');
      return createFastifyApp(VariantModule);
    }
    const { createExpressApp } = await import('../../../sample-app/dist/adapters/express-app.js');
    return createExpressApp(VariantModule);
  },
  { port: Number(process.env.PORT), host: '127.0.0.1' },
);
