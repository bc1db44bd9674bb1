import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, type PROGRAMS, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { request, type RequestOptions } from '../support/http-client.js';
import { scrape } from '../support/scrape.js';

const COUNT = 'http_request_duration_seconds_count';

const ADAPTERS = ['express', 'fastify', 'node'] as const;
type Adapter = (typeof ADAPTERS)[number];

/** Requests, each with the one route that counts it: on all adapters, or on each. */
interface Row extends RequestOptions {
  readonly path: string;
  readonly status: number | Partial<Record<Adapter, number>>;
  readonly route: string | Partial<Record<Adapter, string>>;
}

let cluster: ClusterProcess;

/** Requests answered so far by each route, except the route of the metrics page itself. */
async function countsByRoute(): Promise<Map<string, number>> {
  const page = await scrape(cluster.url);
  const routes = page.labelValues(COUNT, 'route').filter((route) => route !== '/metrics');
  return new Map(routes.map((route) => [route, page.sum(COUNT, { route })]));
}

const total = (counts: Map<string, number>): number =>
  [...counts.values()].reduce((sum, count) => sum + count, 0);

/** As of the last request. */
let before = new Map<string, number>();

/** Sends one request; gives its status and every route that counts more than before. */
async function ask({ path, ...options }: RequestOptions & { path: string }) {
  const { status } = await request(cluster.url, path, options);
  const after = await eventually(
    'the request counted',
    countsByRoute,
    (counts) => total(counts) > total(before),
  );
  const routes = [...after.keys()].filter((route) => after.get(route) !== before.get(route));
  before = after;
  return { status, routes };
}

function serve(
  name: string,
  adapter: Adapter,
  { program = 'app', ...env }: { program?: keyof typeof PROGRAMS } & Record<string, string> = {},
): void {
  beforeAll(async () => {
    cluster = await ClusterProcess.start({
      program,
      options: { workers: 1 },
      env: { ...behaviour(name), TEST_ADAPTER: adapter, ...env },
    });
    before = await countsByRoute();
  });
  afterAll(stopAll);
}

function itCounts(adapter: Adapter, rows: readonly Row[]): void {
  const on = <T extends number | string>(value: T | Partial<Record<Adapter, T>>) =>
    typeof value === 'object' ? value[adapter] : value;
  const cases = rows.flatMap(({ status, route, ...asked }) => {
    const expected = { status: on(status), route: on(route) };
    return expected.route === undefined
      ? []
      : [{ ...expected, asked, title: `${asked.method ?? 'GET'} ${asked.path.slice(0, 40)}` }];
  });
  it.each(cases)('counts $title as $status of $route', async ({ asked, status, route }) => {
    expect(await ask(asked)).toEqual({ status, routes: [route] });
  });
}

/** Routes that Nest does not know. */
const NATIVE: readonly Row[] = [
  { path: '/tenants/1/cats/7', status: 200, route: 'unmatched' },
  { path: '/tenants/1/fails/7', status: 500, route: 'unmatched' },
  { path: '/tenants/1/dogs/7', status: 404, route: 'unmatched' },
  { path: '/pattern/15', status: 200, route: 'unmatched' },
  { path: '/stopped/1', status: 200, route: 'unmatched' },
];

const LONG = 'x'.repeat(10_000);
const JSON_BODY = { 'content-type': 'application/json' };

const NEST: readonly Row[] = [
  { path: '/cats/5?a=b', status: 200, route: '/cats/:id' },
  { path: '/cats/6', method: 'HEAD', status: 200, route: '/cats/:id' },
  { path: 'http://any.test/cats/7', status: 200, route: '/cats/:id' },
  {
    path: `/cats/${LONG}`,
    status: { express: 200, fastify: 414, node: 200 },
    route: { express: '/cats/:id', fastify: 'unmatched', node: '/cats/:id' },
  },
  { path: `/${LONG}`, status: 404, route: 'unmatched' },
  {
    path: '/all/5',
    method: 'PURGE',
    status: 200,
    route: { express: '/all/:id', node: '/all/:id' },
  },
  { path: '/shared/5', method: 'PROPFIND', status: 200, route: '/shared/:id' },
  { path: '/all/5', method: 'DELETE', status: 200, route: '/all/:id' },
  {
    path: '/files/a/b/c',
    status: 200,
    route: { express: '/files/*path', fastify: '/files/*', node: '/files/*path' },
  },
  { path: '/several/1', status: 200, route: '/several/:a' },
  { path: '/many/1', status: 200, route: '/many/:b' },
  { path: '/areas/1/cats/2', status: 200, route: '/areas/:area/cats/:id' },
  { path: '/hosted/5', headers: { host: 'one.test' }, status: 200, route: '/hosted/:id' },
  { path: '/versioned/5', headers: { 'X-Version': '1' }, status: 200, route: '/versioned/:id' },
  { path: '/versioned/5', headers: { 'X-Version': '2' }, status: 200, route: '/versioned/:id' },
  { path: '/bad/5', status: 400, route: '/bad/:id' },
  { path: '/fail/5', status: 500, route: '/fail/:id' },
  { path: '/guarded/5', status: 403, route: '/guarded/:id' },
  { path: '/refused/5', status: 429, route: 'unmatched' },
  { path: '/nothing/here', status: 404, route: 'unmatched' },
  { path: '/%zz', status: 400, route: 'unmatched' },
  { path: '/cats/%zz', status: 400, route: 'unmatched' },
  { path: '/tenants/%zz/cats/7', status: 400, route: 'unmatched' },
  { path: '*', status: 404, route: 'unmatched' },
  {
    path: '/cats/5',
    method: 'OPTIONS',
    headers: { origin: 'http://a.test', 'access-control-request-method': 'GET' },
    status: 204,
    route: 'unmatched',
  },
  {
    path: '/cats/5',
    method: 'POST',
    headers: JSON_BODY,
    body: '{"a":',
    status: 400,
    route: 'unmatched',
  },
  {
    path: '/cats/5',
    method: 'POST',
    headers: JSON_BODY,
    body: JSON.stringify('x'.repeat(2_000_000)),
    status: 413,
    route: 'unmatched',
  },
];

const PREFIXED: readonly Row[] = ['one', 'two'].flatMap((tenant): Row[] => [
  { path: `/in/${tenant}/cats/5`, status: 200, route: '/in/:tenant/cats/:id' },
  { path: `/in/${tenant}/fail/5`, status: 500, route: '/in/:tenant/fail/:id' },
  { path: `/in/${tenant}/guarded/5`, status: 403, route: '/in/:tenant/guarded/:id' },
  { path: `/in/${tenant}/v1/versioned/5`, status: 200, route: '/in/:tenant/v1/versioned/:id' },
  { path: `/in/${tenant}/v2/versioned/5`, status: 200, route: '/in/:tenant/v2/versioned/:id' },
  { path: `/in/${tenant}/areas/5/cats/6`, status: 200, route: '/in/:tenant/areas/:area/cats/:id' },
  { path: `/in/${tenant}/nothing/${tenant}`, status: 404, route: 'unmatched' },
  { path: `/${tenant}`, status: 404, route: 'unmatched' },
  { path: `/bad/${tenant}`, status: 400, route: '/bad/:id' },
]);

describe.each(ADAPTERS)('the routes of an app on %s', (adapter) => {
  serve('routes', adapter, { TEST_ROUTES: 'plain' });
  itCounts(adapter, NEST);
});

describe.each(ADAPTERS)('the routes under a prefix with a parameter on %s', (adapter) => {
  serve('routes', adapter, { TEST_ROUTES: 'prefix' });
  itCounts(adapter, PREFIXED);
});

describe.each(ADAPTERS)('the routes of media types on %s', (adapter) => {
  serve('global-features', adapter, { TEST_FEATURES: 'media' });
  itCounts(
    adapter,
    ['1', '2'].map((id) => ({
      path: `/probe/${id}`,
      headers: { accept: 'application/json;v=1' },
      status: 200,
      route: '/probe/:id',
    })),
  );
});

describe.each([
  ...ADAPTERS.map((adapter) => ({ program: 'app' as const, adapter })),
  { program: 'nest11', adapter: 'express' },
  { program: 'nest11', adapter: 'fastify' },
] as const)('routes that are not those of Nest, in $program on $adapter', (row) => {
  serve('native-routes', row.adapter, { program: row.program });
  itCounts(row.adapter, NATIVE);
});
