import { WebSocketServer } from 'ws';

/** Echoes; its handshake tells whose it is. */
export function serveWebSockets(httpServer) {
  const server = new WebSocketServer({ noServer: true });
  server.on('headers', (headers) => headers.push(`X-Worker: ${process.pid}`));
  server.on('connection', (socket) => {
    socket.on('error', () => {}); // a client that went away; told by its close
    socket.on('message', (data) => socket.send(data, { binary: false }));
  });
  httpServer.on('upgrade', (request, socket, head) => {
    if (request.url.startsWith('/socket.io/')) return;
    server.handleUpgrade(request, socket, head, (client) => server.emit('connection', client));
  });
}
