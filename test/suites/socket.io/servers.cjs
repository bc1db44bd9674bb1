const { ClusterIoAdapter } = require('nestjs-cluster/socket.io');

/** Takes the place of `new Server(httpServer)` with an adapter of its own. */
exports.serverOf = (httpServer) => new ClusterIoAdapter(httpServer).createIOServer(0);
