import { setImmediate as turn } from 'node:timers/promises';

const MEGABYTE = 2 ** 20;
/** So that the answer is out before. */
const SOON_MS = 20;

const ENDS = {
  exit: () => process.exit(3),
  abort: () => process.abort(),
  throw: () => {
    throw new Error('thrown outside of a request');
  },
};

const leaked = [];

/** Each breaks the worker that answers it, after the answer if there is time for one. */
const FAULTS = {
  end(how) {
    setTimeout(() => ENDS[how](), SOON_MS);
  },
  spin() {
    for (;;);
  },
  /** Bit by bit: it is not to hang. */
  async leak(megabytes) {
    for (let held = 0; held < Number(megabytes); held += 2) {
      leaked.push(Buffer.alloc(2 * MEGABYTE, 1));
      await turn();
    }
  },
  log(lines) {
    for (let line = 0; line < Number(lines); line++) console.log(`line ${line}`);
  },
  reject() {
    void Promise.reject(new Error('rejected outside of a request'));
  },
  timer() {
    setTimeout(ENDS.throw, 0);
  },
  heap() {
    for (;;) leaked.push(Array.from({ length: 100_000 }).fill(leaked.length + 0.5));
  },
};

/** Middleware for `/faults/<name>/<argument>`. No route has these URLs. */
export async function breakWhenAsked({ originalUrl, url }, response) {
  const [, , name, argument] = (originalUrl ?? url).split('/');
  await FAULTS[name](argument);
  response.statusCode = 200;
  response.end(JSON.stringify({ name, argument }));
}
