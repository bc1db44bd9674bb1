// Measures in nanoseconds what this package adds to each request, without sockets. The process
// starts an app as usual and sends one request to it. Then it publishes, REQUESTS times, the
// messages of diagnostics_channel that Node publishes when a request begins and when its response
// is finished. Each message has new objects, which are copies of the first request and response.
//
// ADAPTER           express (default) or fastify
// TRACKED           0: the app without this package; only the cost of the loop is left
// REQUESTS          number of requests that are measured
// MODULE_OPTIONS, CPU_BOUND   see variant.mjs
import { channel, subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';

const START = 'http.server.request.start';
const FINISH = 'http.server.response.finish';
/** Messages that are made at once, before the timed loop, so that making them is not timed. */
const BATCH = 1_000;
/** Batches that are not counted, because V8 has not compiled all of the code yet. */
const WARM_UP_BATCHES = 100;

const tracked = process.env.TRACKED !== '0';
const app = tracked ? await startTracked() : await startPlain();
const { message, socket } = await exchange(app.getHttpServer().address().port);
const make = makerOf(message);
const start = channel(START);
const finish = channel(FINISH);
if (start.hasSubscribers !== tracked || finish.hasSubscribers !== tracked) {
  throw new Error('nobody follows the two channels: what is measured here is not what happens');
}
const counted = await countRequests();
for (let k = 0; k < WARM_UP_BATCHES; k += 1) timeBatch();
const batches = Math.ceil(Number(process.env.REQUESTS) / BATCH);
const nanos = Array.from({ length: batches }, timeBatch);
const missed = (WARM_UP_BATCHES + batches) * BATCH - ((await countRequests()) - counted);
if (tracked && missed !== 0) throw new Error(`${missed} requests were not counted`);
nanos.sort((a, b) => a - b);
console.log(JSON.stringify({ least: nanos[0], median: nanos[nanos.length >> 1] }));
socket.destroy();
process.exit();

/** Nanoseconds that a request took of this batch. */
function timeBatch() {
  const messages = Array.from({ length: BATCH }, make);
  const begun = process.hrtime.bigint();
  for (let k = 0; k < BATCH; k += 1) {
    start.publish(messages[k]);
    finish.publish(messages[k]);
  }
  return Number(process.hrtime.bigint() - begun) / BATCH;
}

/** @returns a function that makes messages like the given one, with a new request and response. */
function makerOf({ request, response, socket, server }) {
  // Node keeps a server's two classes under symbols; the app of Express may have set its own there.
  const classOf = (name) =>
    server[Object.getOwnPropertySymbols(server).find((key) => key.description === name)] ??
    http[name];
  const Request = classOf('IncomingMessage');
  const Response = classOf('ServerResponse');
  const blank = new Request(socket);
  const { method, url } = request;
  const added = difference(request, blank);
  const addedToResponse = difference(response, new Response(blank));
  return () => {
    const newRequest = new Request(socket);
    newRequest.method = method;
    newRequest.url = url;
    for (const [key, value] of added) newRequest[key] = value;
    const newResponse = new Response(newRequest);
    for (const [key, value] of addedToResponse) newResponse[key] = value;
    return { request: newRequest, response: newResponse, socket, server };
  };
}

/** The properties that the app has added to a request or response, such as its route. */
function difference(object, blank) {
  return Reflect.ownKeys(object)
    .filter((key) => !Object.hasOwn(blank, key))
    .map((key) => [key, object[key]]);
}

/** Sends one request on a connection that stays open. */
async function exchange(port) {
  let message;
  const keep = (published) => (message = published);
  subscribe(FINISH, keep);
  const client = net.connect(port, '127.0.0.1');
  client.write('GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
  const [answer] = await once(client, 'data');
  if (!String(answer).startsWith('HTTP/1.1 200 ')) throw new Error(`GET /hello: ${answer}`);
  unsubscribe(FINISH, keep);
  return { message, socket: client };
}

/** As the package itself counts them. */
async function countRequests() {
  if (!tracked) return 0;
  const { ClusterService } = await import('nestjs-cluster');
  const { workers } = await app.get(ClusterService).snapshot();
  return workers[0].requestsTotal;
}

async function startTracked() {
  const { bootstrap } = await import('nestjs-cluster/bootstrap');
  const { VariantModule } = await import('./variant.module.mjs');
  const create = await createWith();
  const runtime = await bootstrap(() => create(VariantModule), {
    workers: 0,
    port: '0', // as text: it is meant in production too
    host: '127.0.0.1',
  });
  return runtime.app;
}

async function startPlain() {
  const { PlainModule } = await import('./plain.module.mjs');
  const plain = await (await createWith())(PlainModule);
  await plain.listen(0, '127.0.0.1');
  return plain;
}

async function createWith() {
  if (process.env.ADAPTER === 'fastify') {
    return (await import('../../../sample-app/dist/adapters/fastify-app.js')).createFastifyApp;
  }
  return (await import('../../../sample-app/dist/adapters/express-app.js')).createExpressApp;
}
