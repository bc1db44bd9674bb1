// Autocannon in a process of its own: what it costs shall not delay who measures.
import autocannon from 'autocannon';

const { port, path, ...options } = JSON.parse(process.argv[2]);
let refused = 0;
let unannounced = 0;
const result = await autocannon({
  url: `http://127.0.0.1:${port}${path}`,
  ...options,
  setupClient: (client) =>
    client.on('headers', ({ statusCode, headers }) => {
      if (statusCode !== 503) return;
      // Names and values, one after the other.
      if (headers.some((name) => /^retry-after$/i.test(name))) refused += 1;
      else unannounced += 1;
    }),
});
console.log(JSON.stringify({ ...result, refused, unannounced }));
// It waits for the answers of requests that it has given up.
process.exit();
