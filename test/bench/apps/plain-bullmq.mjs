// Plain BullMQ with a sandboxed processor. ROLE (web or consumer), PORT, HOST, REDIS
// (port), REDIS_HOST, CONCURRENCY, BURN_LOOPS
import { Queue, QueueEvents, Worker } from 'bullmq';
import http from 'node:http';
import { fileURLToPath } from 'node:url';

const { REDIS, REDIS_HOST = '127.0.0.1', HOST = '127.0.0.1', PORT, ROLE } = process.env;
const connection = { host: REDIS_HOST, port: Number(REDIS) };

if (ROLE === 'consumer') {
  const processor = fileURLToPath(new URL('plain-bullmq.processor.cjs', import.meta.url));
  new Worker('plain', processor, {
    connection,
    concurrency: Number(process.env.CONCURRENCY ?? 2),
    // As of this package, so that a consumer that is killed is noticed as soon.
    lockDuration: 10_000,
    stalledInterval: 5_000,
  });
} else {
  const queue = new Queue('plain', { connection });
  const events = new QueueEvents('plain', { connection });
  const answer = async (url, response) => {
    response.setHeader('content-type', 'application/json');
    if (url === '/light') return response.end('{"ok":true}');
    const job = await queue.add('job', {}, { removeOnComplete: 1_000 });
    response.end(JSON.stringify(await job.waitUntilFinished(events)));
  };
  http.createServer(({ url }, response) => void answer(url, response)).listen(Number(PORT), HOST);
}
