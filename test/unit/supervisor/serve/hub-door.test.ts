import { describe, expect, it, vi } from 'vitest';
import { HubDoor } from '../../../../src/supervisor/serve/hub-door.js';

const ADDRESS = { path: '/run/1.ab.hub', token: 'secret' };

describe('the door to the hub', () => {
  it('has it started by the first who asks, once', async () => {
    const open = vi.fn(async () => ({ address: async () => ADDRESS }));
    const door = new HubDoor(vi.fn(), open);
    expect(open).not.toHaveBeenCalled();
    expect(await Promise.all([door.address(), door.address()])).toEqual([ADDRESS, ADDRESS]);
    expect(open).toHaveBeenCalledTimes(1);
  });

  it('says once that there can be none, and tries again for who asks again', async () => {
    const emit = vi.fn();
    const open = vi.fn(async () => ({ address: async () => ADDRESS }));
    for (let n = 0; n < 2; n += 1) open.mockRejectedValueOnce(new Error('no directory'));
    const door = new HubDoor(emit, open);
    for (let n = 0; n < 2; n += 1) await expect(door.address()).rejects.toThrow('no directory');
    expect(await door.address()).toEqual(ADDRESS);
    expect(emit.mock.calls).toEqual([
      ['warning', { message: 'there can be no hub for what workers share: no directory' }],
    ]);
  });
});
