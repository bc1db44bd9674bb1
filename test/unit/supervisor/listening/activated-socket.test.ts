import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  takeActivatedSocket,
  takePassedSocket,
} from '../../../../src/supervisor/listening/activated-socket.js';
import { BoundSocket } from '../../../../src/supervisor/listening/bound-socket.js';
import { temporaryDirectory } from '../../../support/temporary-directory.js';

const OPTIONS = {
  address: { kind: 'tcp', port: 3000, host: undefined },
  addressGiven: true,
  balancing: 'shared',
  workers: 2,
} as const;

const own = (LISTEN_FDS: string): NodeJS.ProcessEnv => ({
  LISTEN_PID: String(process.pid),
  LISTEN_FDS,
  LISTEN_FDNAMES: 'app.socket',
  HOME: '/',
});

const take = (
  env: NodeJS.ProcessEnv,
  options: Partial<Parameters<typeof takeActivatedSocket>[0]> = {},
) => takeActivatedSocket({ ...OPTIONS, ...options }, () => {}, env);

describe('a socket of systemd', () => {
  it.each([{}, { LISTEN_PID: '1', LISTEN_FDS: '1' }, own('0')])('is not there with %o', (env) => {
    expect(take(env)).toBeUndefined();
  });

  it('is refused together with others, and no child gets the variables', () => {
    const env = own('2');
    expect(() => take(env)).toThrow(
      'systemd passes 2 sockets (LISTEN_FDS), and a cluster takes one; keep one ListenStream=',
    );
    expect(env).toEqual({ HOME: '/' });
  });

  it.each(['ports', 'reuse-port', 'round-robin'] as const)(
    'is refused with balancing %s, which needs sockets of its own',
    (balancing) => {
      expect(() => take(own('1'), { balancing })).toThrow(
        `balancing '${balancing}' needs sockets of its own; set balancing to 'shared', or remove`,
      );
    },
  );
});

describe('a socket of an old primary', () => {
  const open = async () => {
    const address = { kind: 'tcp', host: '127.0.0.1', port: 0 } as const;
    const old = await BoundSocket.open(address);
    onTestFinished(() => void old.close());
    return { fd: old.handle!.fd!, address: { ...address, port: old.port! } };
  };

  it('is taken, and not closed for the old primary', async () => {
    const { fd, address } = await open();
    const socket = takePassedSocket({ ...OPTIONS, address }, { fd, activated: false })!;
    expect(socket).toMatchObject({ target: address, isShared: true, isKept: true });
    socket.isShared = false;
    expect(socket.isKept).toBe(false);
  });

  it("is left if the options name another address, unless it is systemd's", async () => {
    const { fd, address } = await open();
    const other = { ...OPTIONS, address: { ...address, port: address.port - 1 } };
    expect(takePassedSocket(other, { fd, activated: true })).toMatchObject({ target: address });
    expect(takePassedSocket(other, { fd, activated: false })).toBeUndefined();
  });

  it('is refused with balancing ports', () => {
    const passed = { fd: 99, activated: false };
    expect(() => takePassedSocket({ ...OPTIONS, balancing: 'ports' }, passed)).toThrow(
      "the old primary passes its socket, and balancing 'ports' needs sockets of its own; restart",
    );
  });

  it('keeps the file of a unix socket until nobody else has it', async () => {
    const path = join(temporaryDirectory(), 'app.sock');
    const old = await BoundSocket.open({ kind: 'unix', path });
    const next = BoundSocket.inherited(old.handle!.fd!, false);
    for (const socket of [old, next]) socket.isShared = true;
    expect([old.close(), next.close(), existsSync(path)]).toEqual([0, 0, true]);
    next.isShared = false;
    expect([next.close(), existsSync(path)]).toEqual([0, false]);
  });
});
