import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { OnceAMinute } from '../../../../src/contract/errors/index.js';

const said: string[] = [];
let log: OnceAMinute;

beforeEach(() => {
  vi.useFakeTimers();
  said.length = 0;
  log = new OnceAMinute((line) => said.push(line));
});
afterEach(() => vi.useRealTimers());

function lose(task: string, reason: string): void {
  log.say(`${task} was lost: ${reason}`, `${task}: ${reason}`, task);
}

describe('lines that every call may cause', () => {
  it('are said once a minute for each kind', () => {
    lose('report', 'out of memory');
    lose('report', 'exited with 3');
    lose('image', 'exited with 3');
    for (let i = 0; i < 5; i++) lose('report', 'exited with 3');
    expect(said).toEqual([
      'report was lost: out of memory',
      'report was lost: exited with 3',
      'image was lost: exited with 3',
    ]);

    vi.advanceTimersByTime(60_000);
    lose('report', 'exited with 3');
    expect(said.slice(3)).toEqual([
      'report was lost: exited with 3 (and 5 times before, since it was last said)',
    ]);
  });

  it('fill no log where each is of a kind of its own', () => {
    for (let i = 0; i < 1_000; i++) lose('report', `at ${i}`);
    expect(said).toHaveLength(21);

    vi.advanceTimersByTime(60_000);
    lose('report', 'at last');
    expect(said.at(-1)).toBe('report was lost: at last');
  });
});
