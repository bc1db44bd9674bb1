import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ClusterRefusedError } from '../../../../src/contract/errors/index.js';
import { collect } from '../../../../src/tools/advise/collect.js';
import type { ControlClient } from '../../../../src/tools/control/control-client.js';
import { profileFile } from '../../support/fake-control-client.js';

const PROFILE = {
  nodes: [{ id: 1, callFrame: { functionName: '(idle)', url: '', lineNumber: -1 } }],
  samples: [1, 1],
  timeDeltas: [0, 1_000_000],
};
const WINDOW = { pid: 7, list: { methods: [], extents: [] }, places: [], profile: PROFILE };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Collects for so many seconds of the fake clock, from a cluster of so many workers. */
async function collected(
  seconds: number,
  workers: number,
  record: (slot: number) => unknown,
  { endsAfterS = seconds } = {},
) {
  const asked: string[] = [];
  const client = {
    get: async () => ({
      cluster: {
        workers: Array.from({ length: workers }, (_, slot) => ({ slot, state: 'ready' })),
      },
    }),
    post: async (path: string) => {
      asked.push(path);
      const answer = record(Number(path.split('/')[3])); // throws at once, as a refusal comes
      await new Promise((resolve) => setTimeout(resolve, Number(path.split('=')[1]) * 1_000));
      return profileFile(answer);
    },
  };
  const done = collect(client as unknown as ControlClient, seconds);
  const settled = done.catch(() => {});
  await vi.advanceTimersByTimeAsync(endsAfterS * 1_000 + 1_000);
  await settled;
  return { ...(await done), asked };
}

const refuse = (message: string) => () => {
  throw new ClusterRefusedError(message);
};

it('profiles all workers in windows of 10 s, and says which window is missing', async () => {
  let times = 0;
  const { pids, lost, asked } = await collected(25, 2, (slot) => {
    if (slot === 1 && times++ === 1) refuse('the worker ended')();
    return { ...WINDOW, pid: 10 + slot };
  });
  const windowsOf = (slot: number) =>
    asked.filter((path) => path.includes(`/${slot}/`)).map((path) => path.split('=')[1]);
  expect(asked[0]).toBe('/v1/workers/0/cpu-profile?methods&seconds=10');
  expect([windowsOf(0), windowsOf(1)]).toEqual([
    ['10', '10', '5'],
    ['10', '10', '10', '5'],
  ]);
  expect(new Set(pids)).toEqual(new Set([10, 11]));
  expect(lost).toEqual([{ slot: 1, reason: 'the worker ended' }]);
});

it('fails with the reasons if no window is complete, and does not try forever', async () => {
  const without = collected(3_600, 1, refuse('it has no watchdog'), { endsAfterS: 15 });
  await expect(without).rejects.toThrow('no worker could be profiled: it has no watchdog');
});

it('fails at the first window if the app has no ClusterModule', async () => {
  const without = collected(60, 1, () => ({ ...WINDOW, list: null }));
  await expect(without).rejects.toThrow('the app does not import ClusterModule');
});
