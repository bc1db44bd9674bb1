import { ClusterModule } from 'nestjs-cluster';

/** Runs an app in a cluster; with SUITE_PLAIN=1 as plain Nest, which prints its port. */
export async function serve(createApp) {
  if (process.env.SUITE_PLAIN !== '1') {
    return ClusterModule.bootstrap(
      () => createApp([ClusterModule.forRoot()]),
      JSON.parse(process.env.TEST_OPTIONS),
    );
  }
  const app = await createApp([]);
  await app.listen(0, '127.0.0.1');
  console.log(app.getHttpServer().address().port);
}
