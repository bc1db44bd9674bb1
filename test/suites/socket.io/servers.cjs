const { createServer } = require('node:http');
const { clusterCache } = require('@nestjs-cluster/shared/cache');
const { ClusterIoAdapter } = require('@nestjs-cluster/socket.io');
const io = require('socket.io');

/** Takes the place of `new Server(httpServer)` with an adapter of its own. */
exports.serverOf = (httpServer) => new ClusterIoAdapter(httpServer).createIOServer(0);

let servers = 0;

/** Socket.IO's own server, with our adapter where the test gives none. Each is a cluster of its own. */
class Server extends io.Server {
  constructor(server, options) {
    const isOptions = typeof server === 'object' && server !== null && !server.listen;
    const path = `/${(servers += 1)}`;
    const adapter = new ClusterIoAdapter(createServer()).createIOServer(0, { path }).adapter();
    super(isOptions ? undefined : server, { adapter, ...(isOptions ? server : options) });
  }
}

/** The hub of this process is there before the first test. */
exports.mochaHooks = { beforeAll: () => clusterCache().get('key') };

module.exports = { ...io, ...exports, Server };
