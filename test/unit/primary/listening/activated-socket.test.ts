import { describe, expect, it } from 'vitest';
import { takeActivatedSocket } from '../../../../src/primary/listening/activated-socket.js';

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
      'systemd passes 2 sockets (LISTEN_FDS), but a cluster uses only one; keep one ListenStream=',
    );
    expect(env).toEqual({ HOME: '/' });
  });

  it.each(['ports', 'reuse-port', 'round-robin'] as const)(
    'is refused with balancing %s, which needs sockets of its own',
    (balancing) => {
      expect(() => take(own('1'), { balancing })).toThrow(
        `balancing '${balancing}' needs its own sockets; set balancing to 'shared', or remove`,
      );
    },
  );
});
