import { HubCore, type WorkerMessage } from '../thread/hub-core.js';
import type { Peer } from '../thread/services/peer.js';
import { checkTexts } from '../wire/check-texts.js';
import { NO_BODY } from '../wire/limits.js';
import type { Dial } from './hub-client.interface.js';

const SWEEP_MS = 1_000;

/** A hub for a process without a primary. It has the same services, but no thread and no socket. */
export const dialInProcess: Dial = (events) => {
  const core = new HubCore();
  const peer: Peer = {
    slot: 0,
    congested: false,
    unsentBytes: 0,
    send: (header, body = NO_BODY) => {
      const own = Buffer.from(body); // the memory of a view may change before the frame is read
      // Later, because the caller waits for the answer only after this call.
      queueMicrotask(() => events.frame(header, own));
    },
  };
  setInterval(() => core.sweep(), SWEEP_MS).unref();
  queueMicrotask(() => events.opened('in-process'));
  return {
    send: (header, body = NO_BODY) => {
      checkTexts(header);
      core.receive(peer, header as WorkerMessage, body);
      return true;
    },
  };
};
