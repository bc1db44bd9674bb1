import { describe, expect, it, vi } from 'vitest';
import { WorkerPassage } from '../../../../src/worker/listen/worker-passage.js';

function start(open = true) {
  const send = vi.fn(() => Promise.resolve());
  return { send, passage: new WorkerPassage({ open, send }) };
}

describe('a connection for another worker', () => {
  const handle = { close: vi.fn() };

  it('travels with what was read of it', async () => {
    const { send, passage } = start();
    await passage.pass('1-a', '0-b', handle, Buffer.from('GET'));
    expect(send).toHaveBeenCalledWith(
      { type: 'pass', to: '1-a', from: '0-b', head: 'R0VU' },
      handle,
    );
  });

  it.each([
    ['there is no primary', false, 3],
    ['more was read than is passed', true, 64 * 1024 + 1],
  ])('stays where %s', (_, open, bytes) => {
    const { send, passage } = start(open);
    expect(passage.pass('1-a', '0-b', handle, Buffer.alloc(bytes))).toBeUndefined();
    expect(send).not.toHaveBeenCalled();
  });
});

it('few connections are on their way at once', async () => {
  const { send, passage } = start();
  const handle = { close: vi.fn() };
  const pass = () => passage.pass('1-a', '0-b', handle, Buffer.alloc(1));
  const all = Array.from({ length: 20 }, pass);
  expect(send).toHaveBeenCalledTimes(8);
  expect(all.filter(Boolean)).toHaveLength(8);
  await new Promise((resolve) => setImmediate(resolve));
  expect(pass()).toBeDefined();
});

describe('a connection of another worker', () => {
  it('is taken by its name, which the primary is told', async () => {
    const { send, passage } = start();
    const take = vi.fn();
    await passage.open('0-b', take);
    expect(send).toHaveBeenCalledWith({ type: 'takes', name: '0-b' });
    const handle = { close: vi.fn() };
    passage.taken({ to: '0-b', head: 'R0VU' }, handle);
    expect(take).toHaveBeenCalledWith(handle, Buffer.from('GET'));
    expect(handle.close).not.toHaveBeenCalled();
  });

  it('is closed where nobody takes it, and lost where there was no descriptor for it', async () => {
    const { passage } = start();
    const take = vi.fn();
    await passage.open('0-b', take);
    const handle = { close: vi.fn() };
    passage.taken({ to: '0-c', head: '' }, handle);
    expect(handle.close).toHaveBeenCalledOnce();
    passage.taken({ to: '0-b', head: '' }, undefined);
    expect(take).not.toHaveBeenCalled();
  });
});
