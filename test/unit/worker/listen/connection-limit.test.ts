import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  ConnectionLimit,
  connectionsWithin,
  openFilesLimit,
} from '../../../../src/worker/listen/connection-limit.js';
import { RequestTracker } from '../../../../src/worker/serve/tracker.js';

describe('the limit of open files', () => {
  const none = () => {
    throw Object.assign(new Error('ENOENT'), { code: 'ENOENT' });
  };
  const text = (soft: string) => () =>
    `Limit                     Soft Limit           Hard Limit           Units\nMax open files            ${soft}                 4096                 files\n`;

  it('is the soft one of /proc', () => {
    expect(openFilesLimit(text('1024'))).toBe(1_024);
  });

  it.each([
    ['nobody says', none],
    ['there is none', text('unlimited')],
    ['another text is there', () => ''],
  ])('is not known where %s', (_, read) => {
    expect(openFilesLimit(read)).toBe(Infinity);
  });

  it('is that which Node reports of this process', () => {
    const known = openFilesLimit();
    const { userLimits } = process.report.getReport() as unknown as {
      userLimits: { open_files: { soft: number } };
    };
    expect(known).toBe(userLimits.open_files.soft);
  });

  it.each([
    [64, 32],
    [128, 64],
    [256, 192],
    [1_024, 768],
    [4_096, 3_072],
    [20_000, 18_976],
    [1_048_576, 1_047_552],
  ])('of %d has room for %d connections', (openFiles, connections) => {
    expect(connectionsWithin(openFiles)).toBe(connections);
  });
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

  /** Room for two connections. */
  const limit = () => new ConnectionLimit(tracker, (message) => warnings.push(message), 4);
  const listening = (listener: net.Server) => once(listener.listen(0, '127.0.0.1'), 'listening');
  const limited = async () => {
    limit().applyTo(server);
    await listening(server);
  };
  const counts = () => [tracker.openConnections, tracker.droppedConnections];

  /** Connects; whether the connection is there once the server has looked at it. */
  async function connect(listener: net.Server, first = ''): Promise<net.Socket> {
    const before = tracker.openConnections + tracker.droppedConnections;
    const socket = net.connect((listener.address() as AddressInfo).port, '127.0.0.1');
    clients.push(socket.on('error', () => {}).resume());
    socket.write(first);
    while (tracker.openConnections + tracker.droppedConnections === before) {
      await new Promise(setImmediate);
    }
    return socket;
  }

  it('are turned away, counted, and told of in one line that says what to do', async () => {
    await limited();
    for (let i = 0; i < 5; i += 1) await connect(server);
    expect(counts()).toEqual([2, 3]);
    expect(warnings).toEqual([
      'turns connections away: 2 are open, and it may open 4 files and sockets in all; raise that limit (ulimit -n, LimitNOFILE= of systemd)',
    ]);
  });

  it('have room again once others have left', async () => {
    await limited();
    const [first] = [await connect(server), await connect(server), await connect(server)];
    first.destroy();
    while (tracker.openConnections > 1) await new Promise(setImmediate);
    await connect(server);
    expect(counts()).toEqual([2, 1]);
  });

  it('take the place of those that never sent a byte', async () => {
    await limited();
    const [silent, speaking] = [await connect(server), await connect(server, 'GET / HTTP/1.1\r\n')];
    await connect(server);
    await once(silent, 'close');
    while (tracker.openConnections > 1) await new Promise(setImmediate);
    expect(speaking.destroyed).toBe(false);
    expect(tracker.droppedConnections).toBe(2);
  });

  it('are counted over all listeners of the process together', async () => {
    const both = limit();
    both.applyTo(server);
    const adopted = net.createServer((socket) => server.emit('connection', socket));
    both.share(adopted, server);
    await listening(server);
    await listening(adopted);
    await connect(adopted);
    await connect(server);
    await connect(adopted);
    await connect(server);
    adopted.close();
    expect(counts()).toEqual([2, 2]);
  });

  it('are those over the limit that the app has set, about which it knows best', async () => {
    server.maxConnections = 1;
    limit().applyTo(server);
    expect(server.maxConnections).toBe(1);
    await listening(server);
    await connect(server);
    await connect(server);
    expect(counts()).toEqual([1, 1]);
    server.maxConnections = 3;
    await connect(server);
    await connect(server);
    expect(counts()).toEqual([3, 1]);
    expect(warnings).toEqual([]);
  });

  describe('of a further server', () => {
    let further: Server;
    beforeEach(async () => {
      further = createServer();
      tracker.follow(further);
      await listening(server);
      await listening(further);
    });
    afterEach(() => {
      further.closeAllConnections();
      further.close();
    });

    it("are turned away as those of the app's own, and make room for them", async () => {
      const both = limit();
      for (const each of [server, further, further]) both.applyTo(each);
      const silent = [await connect(further), await connect(further)];
      await connect(further);
      await connect(server);
      expect(counts()).toEqual([2, 2]);
      await Promise.all(silent.map((socket) => once(socket, 'close')));
      await connect(server);
      expect(tracker.openConnections).toBe(1);
    });

    it('are those over the number that the app has set for it, which no other server has', async () => {
      const both = limit();
      for (const each of [server, further]) both.applyTo(each);
      further.maxConnections = 1;
      await connect(server);
      await connect(further);
      await connect(further);
      expect(counts()).toEqual([2, 1]);
      expect(warnings).toEqual([]);
      await connect(server);
      expect(counts()).toEqual([2, 2]);
      expect(warnings).toHaveLength(1);
    });

    it('count for no number that the app has set for its own', async () => {
      const both = limit();
      for (const each of [server, further]) both.applyTo(each);
      server.maxConnections = 1;
      await connect(further);
      await connect(server);
      await connect(server);
      expect(counts()).toEqual([2, 1]);
    });
  });

  it('are none where the limit of open files is not known', async () => {
    new ConnectionLimit(tracker, (message) => warnings.push(message), Infinity).applyTo(server);
    await listening(server);
    for (let i = 0; i < 5; i += 1) await connect(server);
    expect(counts()).toEqual([5, 0]);
  });
});
