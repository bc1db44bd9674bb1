import { describe, expect, it } from 'vitest';
import { refusalOf, type Situation } from '../../../../src/bootstrap/upgrade/refusal.js';
import type { Listening } from '../../../../src/supervisor/listening/listening.interface.js';

const SHELL: Situation = {
  pid: 4242,
  ppid: 4000,
  init: 'systemd',
  env: {},
  isSuccessor: false,
  hasChannel: false,
};

const held = (fd: number | undefined) =>
  [{ handle: fd === undefined ? undefined : { fd } }] as unknown as Listening['sockets'];

const refuse = (
  situation: Partial<Situation>,
  listening: Partial<Pick<Listening, 'balancing' | 'sockets'>> = {},
) =>
  refusalOf({ balancing: 'shared', sockets: held(20), ...listening }, { ...SHELL, ...situation });

describe('an upgrade', () => {
  it.each<{ where: string; situation: Partial<Situation> }>([
    { where: 'under a shell', situation: {} },
    { where: 'as a service of systemd', situation: { ppid: 1 } },
    { where: 'without /proc', situation: { ppid: 1, init: undefined } },
    {
      where: 'after an upgrade in a container',
      situation: { ppid: 1, init: 'sh', isSuccessor: true },
    },
  ])('is possible $where', ({ situation }) => {
    expect(refuse(situation)).toBeUndefined();
  });

  it('is possible without a socket, for an app without an HTTP server', () => {
    expect(refuse({}, { balancing: 'none', sockets: [] })).toBeUndefined();
  });

  it.each<{ situation: Partial<Situation>; why: string }>([
    {
      situation: { pid: 1, ppid: 0 },
      why: 'the container ends with this primary, because it is PID 1',
    },
    { situation: { ppid: 0 }, why: 'because PID 1 waits for it' },
    { situation: { ppid: 1, init: 'tini' }, why: 'because PID 1 waits for it' },
    { situation: { env: { pm_id: '0' } }, why: 'pm2 would start the cluster again' },
    { situation: { hasChannel: true }, why: 'an IPC channel to this primary' },
  ])('is refused with %o', ({ situation, why }) => {
    expect(refuse(situation)).toContain(why);
  });

  it.each(['round-robin', 'reuse-port', 'ports'] as const)(
    'is refused with balancing %s',
    (balancing) => {
      expect(refuse({}, { balancing })).toContain(
        `balancing '${balancing}' has sockets that cannot`,
      );
    },
  );

  it('is refused if the primary does not hold the socket', () => {
    expect(refuse({}, { sockets: held(undefined) })).toContain(
      'does not let a primary hold its socket',
    );
  });
});
