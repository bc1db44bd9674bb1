// Takes the place of node:cluster in the tests of @socket.io/cluster-adapter: three forks are one
// cluster of this package, whose workers have ports of their own.
const { EventEmitter } = require('node:events');
const { createServer } = require('node:net');
const { join } = require('node:path');
const { createInterface } = require('node:readline');
const { deserialize, serialize } = require('node:v8');

const workers = [];
let port;
let running;

/** A worker connects to the port that this returns, and first says its slot. */
function listen() {
  const channel = createServer((socket) => {
    socket.on('error', () => {});
    createInterface({ input: socket }).once('line', (slot) => {
      const worker = workers[slot];
      worker.send = (message) => socket.write(`${serialize(message).toString('base64')}\n`);
      createInterface({ input: socket }).on('line', (line) => {
        worker.emit('message', deserialize(Buffer.from(line, 'base64')));
      });
      worker.socket = socket;
      worker.emit('connected');
    });
  });
  return new Promise((resolve) =>
    channel.listen(0, '127.0.0.1', () => resolve(channel.address().port)),
  );
}

async function start() {
  const { Cluster } = await import('../cluster.mjs');
  await running; // the former cluster has ended
  const cluster = new Cluster({
    program: join(__dirname, 'app.mjs'),
    options: { workers: 3, balancing: 'ports', port: 40_001 },
    env: { SUITE_PORT: String(await (port ??= listen())) },
  });
  void cluster.exited.then(({ code, signal }) => {
    if (code !== 0) console.error(`it ended with ${code ?? signal}`, cluster.output());
  });
  return cluster;
}

let starting;
async function isReady(slot) {
  const cluster = await starting;
  await cluster.until(`worker ${slot}`, () => cluster.workers.has(slot));
}

exports.__esModule = true;
exports.default = {
  workers: {},
  setupMaster() {},
  fork({ PORT }) {
    const slot = PORT - 40_001;
    const worker = (workers[slot] = new EventEmitter());
    exports.default.workers[slot] = worker;
    worker.kill = () => {
      if (slot === 0) running = starting.then((cluster) => cluster.stop());
    };
    if (slot === 0) starting = new Promise((resolve) => setImmediate(resolve)).then(start);
    worker.once('connected', () => void isReady(slot).then(() => worker.emit('listening')));
    return worker;
  },
};
exports.setupPrimary = () => {};
