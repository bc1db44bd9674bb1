import { at } from '../../../observe/findings/app-view.js';
import type { Check } from '../../../observe/findings/finding.js';

/** The default keep-alive time of nginx upstreams and AWS load balancers. */
const PROXY_KEEP_ALIVE_MS = 60_000;

const MS_PER_SECOND = 1_000;

export const keepAlive: Check = {
  name: 'keep-alive',
  remedy:
    "set keepAliveTimeout of app.getHttpServer() above the proxy's, or the proxy's below it; --proxy-keep-alive tells doctor the proxy's",
  look(app, { main, proxyKeepAliveMs }) {
    const ours = app.httpServer?.keepAliveTimeout;
    // An app that is set to trust a proxy is assumed to run behind one.
    const theirs = proxyKeepAliveMs ?? (trustsProxy(app.http) ? PROXY_KEEP_ALIVE_MS : undefined);
    // 0 means that Node never closes an idle connection.
    if (ours === undefined || ours === 0 || theirs === undefined || ours > theirs) return [];
    const assumed = proxyKeepAliveMs === undefined ? ' by default' : '';
    return [
      {
        where: `the HTTP server of ${main}`,
        problem: `it closes an idle connection after ${ours / MS_PER_SECOND} s and the proxy keeps it for ${theirs / MS_PER_SECOND} s${assumed}, so a request may meet a connection that is being closed (502)`,
      },
    ];
  },
};

export const forceCloseConnections: Check = {
  name: 'force-close-connections',
  level: 'note',
  remedy:
    'leave it out; shutdown.drainTimeoutMs of bootstrap() says how long connections have to finish',
  look: (app, { main }) =>
    app.options['forceCloseConnections'] === true
      ? [
          {
            where: `NestFactory.create() of ${main}`,
            problem:
              'forceCloseConnections does nothing: when the app is closed, its worker has been drained and no connection is left',
          },
        ]
      : [],
};

/** Express has the setting 'trust proxy', Fastify the option `trustProxy`. */
function trustsProxy(http: unknown): boolean {
  const get = at(http, 'get');
  const settings = at(http, 'settings');
  if (typeof get === 'function' && settings !== undefined) {
    return Boolean(at(settings, 'trust proxy'));
  }
  const options = Object.getOwnPropertySymbols(Object(http)).find(
    ({ description }) => description === 'fastify.options',
  );
  return options !== undefined && Boolean(at(http, options, 'trustProxy'));
}
