import { expect, it, vi } from 'vitest';
import { BACKLOG, emptyAndClose, pollOnce } from '../../../../src/contract/process/accept-queue.js';

it.each([
  { waiting: 0, accepted: 0 },
  { waiting: BACKLOG, accepted: BACKLOG },
  { waiting: 2 * BACKLOG, accepted: BACKLOG + 1 },
])('accepts $accepted of $waiting connections, then closes', async ({ waiting, accepted }) => {
  const accept = vi.fn();
  // No process has a descriptor with this number, so its queue cannot be read in /proc.
  const handle = { fd: 2 ** 30, listen: () => 0, onconnection: accept };
  const close = vi.fn();
  const emptied = emptyAndClose(handle, new AbortController().signal, close);

  for (let i = 0; i < waiting && close.mock.calls.length === 0; i += 1) {
    handle.onconnection();
    await pollOnce();
  }
  await emptied;

  expect(accept).toHaveBeenCalledTimes(accepted);
  expect(close).toHaveBeenCalledOnce();
});
