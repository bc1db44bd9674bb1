import { Controller, Get, Param } from '@nestjs/common';
import { setImmediate as turn } from 'node:timers/promises';
import { decorate } from './routes.mjs';

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

/** Routes that break the worker that answers them. */
export class Faults {
  #leaked = [];

  end(how) {
    setTimeout(() => ENDS[how](), SOON_MS);
    return { how };
  }
  spin() {
    for (;;);
  }
  /** Bit by bit: it is not to hang. */
  async leak(megabytes) {
    for (let held = 0; held < Number(megabytes); held += 2) {
      this.#leaked.push(Buffer.alloc(2 * MEGABYTE, 1));
      await turn();
    }
    return { megabytes };
  }
  log(lines) {
    for (let line = 0; line < Number(lines); line++) console.log(`line ${line}`);
    return { lines };
  }
}
Controller('faults')(Faults);
const ROUTES = { end: 'end/:how', spin: 'spin', leak: 'leak/:megabytes', log: 'log/:lines' };
const PARAMETERS = { end: 'how', leak: 'megabytes', log: 'lines' };
for (const [name, path] of Object.entries(ROUTES)) {
  decorate([Get(path)], Faults.prototype, name);
  if (PARAMETERS[name]) Param(PARAMETERS[name])(Faults.prototype, name, 0);
}
