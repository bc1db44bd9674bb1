import http, { type IncomingMessage, type ServerResponse } from 'node:http';

/** The answer to a request for an upgrade, taken or not. */
export function upgradeOf(url: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { Connection: 'Upgrade', Upgrade: 'websocket' };
    http
      .get(`http://${url}`, { headers, agent: false })
      .on('upgrade', (response, socket) => {
        socket.destroy();
        resolve(response);
      })
      .on('response', (response: IncomingMessage & Partial<ServerResponse>) => {
        response.resume();
        resolve(response);
      })
      .on('error', reject);
  });
}
