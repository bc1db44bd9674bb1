import net from 'node:net';

/**
 * Asks for paths by kept connections without pause for some seconds. Parses next to nothing.
 *
 * @returns requests answered by 200, and the others.
 */
export async function askMixed(port, pathOf, { connections, seconds }) {
  const counts = { requests: 0, errors: 0 };
  const sockets = Array.from({ length: connections }, () => ask(port, pathOf, counts));
  await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
  for (const close of sockets) close();
  return counts;
}

function ask(port, pathOf, counts) {
  let ended = false;
  let socket;
  const next = () => socket.write(`GET ${pathOf()} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
  const connect = () => {
    socket = net.connect(port, '127.0.0.1').setNoDelay();
    // An answer is small: it comes in one piece.
    socket.on('data', (chunk) => {
      const text = chunk.toString('latin1');
      if (text.startsWith('HTTP/1.1 200')) counts.requests += 1;
      else counts.errors += 1;
      if (/connection: close/i.test(text)) socket.destroy();
      else next();
    });
    socket.on('error', () => (counts.errors += 1));
    socket.on('close', () => {
      if (!ended) connect();
    });
    next();
  };
  connect();
  return () => {
    ended = true;
    socket.destroy();
  };
}
