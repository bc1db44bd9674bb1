import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connectionLimit, openFilesLimit } from '../../../../src/worker/listen/sockets.js';
import { RequestTracker } from '../../../../src/worker/serve/tracker.js';

it('reads the limit of open files that Node reports of this process', () => {
  const { userLimits } = process.report.getReport() as unknown as {
    userLimits: { open_files: { soft: number } };
  };
  expect(openFilesLimit()).toBe(userLimits.open_files.soft);
});

describe('connections over the limit', () => {
  let server: Server;
  let tracker: RequestTracker;
  const warnings: string[] = [];
  const clients: net.Socket[] = [];

  beforeEach(() => {
    server = createServer((_, response) => response.end('hello'));
    tracker = new RequestTracker();
    tracker.follow(server);
    warnings.length = 0;
  });
  afterEach(() => {
    for (const client of clients.splice(0)) client.destroy();
    tracker.unfollow();
    server.closeAllConnections();
    server.close();
  });

  /** Room for three connections. */
  const limited = async () => {
    connectionLimit(tracker, (message) => warnings.push(message), 4)(server);
    await once(server.listen(0, '127.0.0.1'), 'listening');
  };
  const counts = () => [tracker.openConnections, tracker.droppedConnections];

  /** Connects; whether the connection is there once the server has looked at it. */
  async function connect(): Promise<net.Socket> {
    const before = tracker.openConnections + tracker.droppedConnections;
    const socket = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
    clients.push(socket.on('error', () => {}).resume());
    while (tracker.openConnections + tracker.droppedConnections === before) {
      await new Promise(setImmediate);
    }
    return socket;
  }

  it('are rejected, counted, and reported in one line that says what to do', async () => {
    await limited();
    for (let i = 0; i < 5; i += 1) await connect();
    expect(counts()).toEqual([3, 2]);
    expect(warnings).toEqual([
      'connections are refused: 3 are open, and the process is limited to 4 open files and sockets; raise the limit (ulimit -n, or LimitNOFILE= in the systemd unit)',
    ]);
  });

  it('are those of the app where it has set the limit of its server', async () => {
    server.maxConnections = 1;
    await limited();
    expect(server.maxConnections).toBe(1);
    expect(server.listenerCount('drop')).toBe(0);
  });

  it.each([
    [128, 96],
    [1_024, 768],
    [20_000, 18_976],
    [Infinity, undefined],
  ])('with a limit of %d open files are those over %s', (openFiles, connections) => {
    connectionLimit(tracker, () => {}, openFiles)(server);
    expect(server.maxConnections).toBe(connections);
  });
});
