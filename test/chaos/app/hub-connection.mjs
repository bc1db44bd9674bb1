import net from 'node:net';

/** None of the package's own questions has it. */
const QUESTION = 2 ** 40;
const HUB_VERSION = 1;

/** A connection to the hub that sends whatever it is told to: the package's own refuses what is too large. */
export class HubConnection {
  #received = Buffer.alloc(0);
  #lastId = 0;

  constructor(socket) {
    this.socket = socket;
    socket.on('data', (chunk) => (this.#received = Buffer.concat([this.#received, chunk])));
    socket.on('error', () => {}); // who waits hears of the end
  }

  static async open() {
    const { path, token } = await askForHub();
    const connection = new HubConnection(net.connect(path));
    await connection.ask({ op: 'hello', v: HUB_VERSION, token, slot: 0 });
    return connection;
  }

  /** @param bodyBytes that follow. Resolves with the header of the answer. */
  async ask(question, bodyBytes = 0) {
    const id = (this.#lastId += 1);
    const header = Buffer.from(JSON.stringify({ ...question, id }));
    const prefix = Buffer.alloc(8);
    prefix.writeUInt32LE(4 + header.length + bodyBytes, 0);
    prefix.writeUInt32LE(header.length, 4);
    this.socket.write(Buffer.concat([prefix, header, Buffer.alloc(bodyBytes)]));
    for (;;) {
      const answer = this.#take();
      if (answer?.id === id) return answer;
      if (answer !== undefined) continue;
      if (this.socket.destroyed) throw new Error('the hub has ended the connection');
      await new Promise((resolve) => this.socket.once('data', resolve).once('close', resolve));
    }
  }

  close() {
    this.socket.destroy();
  }

  #take() {
    if (this.#received.length < 8) return undefined;
    const end = 4 + this.#received.readUInt32LE(0);
    if (this.#received.length < end) return undefined;
    const header = this.#received.toString('utf8', 8, 8 + this.#received.readUInt32LE(4));
    this.#received = this.#received.subarray(end);
    return JSON.parse(header);
  }
}

/** Asks the primary where the hub is, as the package does. */
async function askForHub() {
  const answered = new Promise((resolve) => {
    process.on('message', function hear(message) {
      if (message?.id !== QUESTION) return;
      process.off('message', hear);
      resolve(message);
    });
  });
  process.send({ ns: 'nestjs-cluster', v: 1, type: 'hub-request', id: QUESTION });
  return answered;
}
