import { describe, expect, it } from 'vitest';
import { ClusterAddressError } from '../../../../src/contract/errors/index.js';
import { DeferredListening } from '../../../../src/primary/listening/deferred-listening.js';
import type { Listening } from '../../../../src/primary/listening/listening.interface.js';
import type { openListening } from '../../../../src/primary/listening/open-listening.js';
import type { WorkerHandle } from '../../../../src/primary/worker-handle.js';
import { FakeWorker } from '../../support/fake-worker.js';

const OPTIONS = {
  address: { kind: 'tcp', port: 3000, host: undefined },
  balancing: 'ports',
  workers: 2,
} as const;

/** A listening that is opened on demand, and what happened to it. */
function deferred({ failures = 0 } = {}) {
  const seen = { opened: [] as number[], granted: [] as unknown[], reserved: 0, closed: 0 };
  const opened: Listening = {
    balancing: 'ports',
    url: 'http://localhost:3000',
    ports: [3000, 3001],
    sockets: [],
    grant: (worker) => void seen.granted.push(worker),
    reserve: (slots) => void (seen.reserved = slots),
    settle() {},
    close: () => void (seen.closed += 1),
  };
  let left = failures;
  const open: typeof openListening = async ({ workers }) => {
    seen.opened.push(workers);
    if ((left -= 1) >= 0) {
      const cause = Object.assign(new Error('bind EADDRINUSE'), { code: 'EADDRINUSE' });
      throw new ClusterAddressError('http://0.0.0.0:3000', cause);
    }
    return opened;
  };
  return { listening: new DeferredListening(OPTIONS, open), seen };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('the default address', () => {
  it('is not bound where no worker asks for it', async () => {
    const { listening, seen } = deferred();
    listening.reserve(4);
    listening.settle([], 0);
    expect([listening.balancing, listening.ports]).toEqual(['none', []]);
    listening.close();
    expect(seen.closed).toBe(0);
    await settled();
    expect(seen.opened).toEqual([]);
  });

  it('is bound once, for the first of those that ask, and for as many slots as there are by then', async () => {
    const { listening, seen } = deferred();
    const [one, other, late] = [{}, {}, {}] as WorkerHandle[];
    listening.reserve(4);
    listening.grant(one!);
    listening.grant(other!);
    await settled();
    listening.grant(late!);
    listening.reserve(5);
    expect(seen).toMatchObject({ opened: [4], granted: [one, other, late], reserved: 5 });
    expect(listening).toMatchObject({ balancing: 'ports', ports: [3000, 3001] });
    listening.close();
    expect(seen.closed).toBe(1);
  });

  it('is refused where it cannot be had, with what the system said, and tried again for the next', async () => {
    const { listening, seen } = deferred({ failures: 1 });
    const [first, next] = [new FakeWorker(), new FakeWorker()];
    listening.grant(first.handle);
    await settled();
    expect(first.sent('listen-refused')).toMatchObject([
      { error: { code: 'EADDRINUSE', message: 'bind EADDRINUSE' } },
    ]);
    listening.grant(next.handle);
    await settled();
    expect([next.inbox, seen.granted]).toEqual([[], [next.handle]]);
  });

  it('is let go of where the cluster ends while it is being bound', async () => {
    const { listening, seen } = deferred();
    listening.grant({} as WorkerHandle);
    listening.close();
    await settled();
    expect(seen.closed).toBe(1);
  });
});
