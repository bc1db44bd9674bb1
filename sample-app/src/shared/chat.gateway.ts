import { WebSocketGateway, WebSocketServer } from '@nestjs/websockets';
import type { Server } from 'socket.io';

/** Socket.IO by `ClusterIoAdapter`, which create-app.ts gives to the app. */
@WebSocketGateway()
export class ChatGateway {
  @WebSocketServer()
  private readonly server!: Server;

  /** Reaches the clients of all workers. */
  say(text: string, slot: number): void {
    this.server.emit('said', { text, slot });
  }

  /** Counts the clients of all workers. */
  async clients(): Promise<number> {
    return (await this.server.fetchSockets()).length;
  }
}
