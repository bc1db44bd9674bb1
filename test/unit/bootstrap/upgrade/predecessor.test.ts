import { describe, expect, it } from 'vitest';
import { HANDOVER_VARIABLE } from '../../../../src/bootstrap/upgrade/handover.js';
import { takeHandover } from '../../../../src/bootstrap/upgrade/predecessor.js';

const workers = { configured: 2, desired: 3 };

const take = (handover: object, more: NodeJS.ProcessEnv = {}) => {
  const env: NodeJS.ProcessEnv = { ...more, [HANDOVER_VARIABLE]: JSON.stringify(handover) };
  return { taken: takeHandover(env), env };
};

describe('what an old primary has passed', () => {
  it('is taken once, so that no child takes it', () => {
    const handover = { v: 1, pid: process.ppid, firstPid: process.ppid, workers };
    const { taken, env } = take(handover, { HOME: '/' });
    expect(taken).toEqual(handover);
    expect(env).toEqual({ HOME: '/' });
    expect(takeHandover(env)).toBeUndefined();
  });

  it('is also taken if the old primary is gone', () => {
    // Above the maximum of Linux, so no process has this pid.
    expect(take({ v: 1, pid: 2 ** 22 + 1, firstPid: 1, workers }).taken).toBeDefined();
  });

  it.each([
    { v: 2, pid: process.ppid },
    { v: 1, pid: process.pid },
  ])('is not for this process: %o', (handover) => {
    expect(take({ firstPid: 1, workers, ...handover }).taken).toBeUndefined();
  });

  it.each(['', 'null', '{', '7'])('is none if a user has set the variable to %o', (text) => {
    expect(takeHandover({ [HANDOVER_VARIABLE]: text })).toBeUndefined();
  });

  it('makes the variables of systemd mean this process, if they meant the old primary', () => {
    const handover = { v: 1, pid: process.ppid, firstPid: 4242, workers };
    const own = String(process.pid);
    expect(take(handover, { SYSTEMD_EXEC_PID: '4242', WATCHDOG_PID: '4242' }).env).toEqual({
      SYSTEMD_EXEC_PID: own,
      WATCHDOG_PID: own,
    });
    expect(take(handover, { SYSTEMD_EXEC_PID: '4000' }).env).toEqual({ SYSTEMD_EXEC_PID: '4000' });
  });
});
