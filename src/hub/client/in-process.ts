import { HubCore, type Peer, type Said } from '../wire/hub-core.js';
import { type FromHub, NO_BODY } from '../wire/protocol.js';
import type { Dial } from './line.js';

const SWEEP_MS = 1_000;

/** A hub for a process that has no primary: the same services, without a thread and a socket. */
export const dialInProcess: Dial = (events) => {
  const core = new HubCore();
  const peer: Peer = {
    slot: 0,
    congested: false,
    unsentBytes: 0,
    send: (header: FromHub, body = NO_BODY) => {
      const own = Buffer.from(body); // a view: what it shows may change until then
      queueMicrotask(() => events.frame(header, own));
    },
  };
  setInterval(() => core.sweep(), SWEEP_MS).unref();
  queueMicrotask(() => events.opened('in-process'));
  return {
    send: (header, body = NO_BODY) => {
      // Not in the caller's own call: it may answer before the caller waits for it.
      core.receive(peer, header as Said, body);
      return true;
    },
  };
};
