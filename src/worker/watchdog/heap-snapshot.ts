import { getHeapSnapshot } from 'node:v8';
import { ByteSink } from './byte-sink.js';

/** Sends a heap snapshot to a unix socket. Takes no snapshot if nobody listens on the socket. */
export async function sendHeapSnapshot(path: string): Promise<void> {
  let left = false;
  const sink = await ByteSink.open(path, () => (left = true)).catch(() => undefined);
  if (sink === undefined) return;
  try {
    for await (const chunk of getHeapSnapshot() as AsyncIterable<Buffer | string>) {
      if (left) return;
      await sink.write(Buffer.from(chunk));
    }
    await sink.end();
  } catch (error) {
    await sink.fail(error);
  }
}
