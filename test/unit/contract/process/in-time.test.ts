import { beforeEach, expect, it, vi } from 'vitest';
import { ClusterAddressError } from '../../../../src/contract/errors/errors.js';
import { whenFree } from '../../../../src/contract/process/in-time.js';

beforeEach(() => void vi.useFakeTimers());

const failure = (code: string) =>
  new ClusterAddressError('http://127.0.0.1:3000', { code, message: code });

it('waits for an address that becomes free', async () => {
  const take = vi.fn<() => Promise<string>>();
  take.mockResolvedValue('taken').mockRejectedValueOnce(failure('EADDRINUSE'));
  const outcome = whenFree(take);

  await vi.advanceTimersByTimeAsync(99);
  expect(take).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(1);

  expect(await outcome).toBe('taken');
});

it('gives up after 3 s with the last error', async () => {
  const taken = failure('EADDRINUSE');
  const outcome = whenFree(() => Promise.reject(taken)).catch((error: Error) => error);
  const settled = vi.fn();
  void outcome.then(settled);

  await vi.advanceTimersByTimeAsync(2_900);
  expect(settled).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(200);

  expect(settled).toHaveBeenCalledWith(taken);
});

it.each([failure('EACCES'), new Error('other')])('does not wait for $message', async (error) => {
  await expect(whenFree(() => Promise.reject(error))).rejects.toBe(error);
});
