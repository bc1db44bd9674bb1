import { Controller, Get } from '@nestjs/common';
import { CpuBound, move } from 'nestjs-cluster';

const MEGABYTE = 1_048_576;

/** The same small thing on the event loop and in a thread, and a megabyte there and back. */
export class OffloadController {
  /** What is moved away is gone here until it comes back: one for each connection. */
  #idle = Array.from({ length: 16 }, () => new Uint8Array(MEGABYTE).fill(1));

  plain() {
    return { ok: true };
  }
  trivial() {
    return { ok: true };
  }
  async moved() {
    const bytes = await this.there(move(this.#idle.pop()));
    this.#idle.push(bytes);
    return { length: bytes.length };
  }
  there(bytes) {
    return move(bytes);
  }
}

function method(name, ...decorators) {
  const { prototype } = OffloadController;
  for (const decorate of decorators) {
    const before = Object.getOwnPropertyDescriptor(prototype, name);
    Object.defineProperty(prototype, name, decorate(prototype, name, before) ?? before);
  }
}

Controller()(OffloadController);
method('plain', Get('plain'));
method('trivial', CpuBound(), Get('trivial'));
method('moved', Get('moved'));
// A buffer that is on its way is not to be lost with a client that leaves.
method('there', CpuBound({ abortOnDisconnect: false }));
