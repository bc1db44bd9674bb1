import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LossLog } from '../../../../src/offload/pool/loss-log.js';

const said: string[] = [];
let log: LossLog;

beforeEach(() => {
  vi.useFakeTimers();
  said.length = 0;
  log = new LossLog((line) => said.push(line));
});
afterEach(() => vi.useRealTimers());

function lose(task: string, reason: string): void {
  log.lost(task, reason);
}

describe('threads that are lost', () => {
  it('are said by each cause and task, and those of one cause once a minute', () => {
    lose('report', 'out of memory');
    lose('report', 'exited with 3');
    lose('image', 'exited with 3');
    for (let i = 0; i < 5; i++) lose('report', 'exited with 3');
    expect(said).toEqual([
      'the thread of report was lost: out of memory',
      'the thread of report was lost: exited with 3',
      'the thread of image was lost: exited with 3',
    ]);

    vi.advanceTimersByTime(60_000);
    lose('report', 'exited with 3');
    expect(said.slice(3)).toEqual([
      'the thread of report was lost: exited with 3 (and 5 times before, since it was last said)',
    ]);
  });

  it('fill no log where each has a cause of its own', () => {
    for (let i = 0; i < 1_000; i++) lose('report', `at ${i}`);
    expect(said).toHaveLength(21);

    vi.advanceTimersByTime(60_000);
    lose('report', 'at last');
    expect(said.at(-1)).toBe('the thread of report was lost: at last');
  });
});
