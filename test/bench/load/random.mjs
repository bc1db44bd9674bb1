import net from 'node:net';

/**
 * Asks for a path at random times, as many clients do that know nothing of each other: so many times
 * a second on average, each on a kept connection that is free.
 *
 * @returns requests answered by 200, the others, and how many were in flight on average.
 */
export async function askAtRandom(port, path, { rps, seconds }) {
  const free = [];
  const all = [];
  const counts = { requests: 0, errors: 0, totalMs: 0 };
  const text = `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`;
  const ask = () => {
    const connection = free.pop() ?? connect(port, counts, free, all);
    connection.askedAt = performance.now();
    connection.socket.write(text);
  };
  const startedAt = performance.now();
  const endsAt = startedAt + seconds * 1_000;
  for (let next = startedAt; next < endsAt;) {
    while (next <= performance.now() && next < endsAt) {
      ask();
      next += (-Math.log(1 - Math.random()) / rps) * 1_000;
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  for (const { socket } of all) socket.destroy();
  return { ...counts, inFlight: counts.totalMs / (seconds * 1_000) };
}

function connect(port, counts, free, all) {
  const connection = { askedAt: 0, socket: net.connect(port, '127.0.0.1').setNoDelay() };
  all.push(connection);
  // An answer is small: it comes in one piece.
  connection.socket.on('data', (chunk) => {
    counts.totalMs += performance.now() - connection.askedAt;
    const text = chunk.toString('latin1');
    if (text.startsWith('HTTP/1.1 200')) counts.requests += 1;
    else counts.errors += 1;
    if (/connection: close/i.test(text)) connection.socket.destroy();
    else free.push(connection);
  });
  connection.socket.on('error', () => (counts.errors += 1));
  return connection;
}
