import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { OnceAMinute, onceEach } from '../../../../src/contract/errors/index.js';

const logged: string[] = [];
const log = (line: string) => void logged.push(line);

beforeEach(() => {
  vi.useFakeTimers();
  logged.length = 0;
});
afterEach(() => vi.useRealTimers());

describe('OnceAMinute', () => {
  const start = () => {
    const lines = new OnceAMinute(log);
    return (task: string, reason: string) => lines.say(`${task} was lost: ${reason}`, task);
  };

  it('logs one line a minute for each kind, with the number that it left out', () => {
    const lose = start();
    lose('report', 'out of memory');
    lose('image', 'exited with 3');
    for (let i = 0; i < 5; i++) lose('report', 'exited with 3');
    expect(logged).toEqual(['report was lost: out of memory', 'image was lost: exited with 3']);

    vi.advanceTimersByTime(60_000);
    lose('report', 'exited with 3');
    lose('image', 'exited with 3');
    expect(logged.slice(2)).toEqual([
      'report was lost: exited with 3 (and 5 times since the last such line)',
      'image was lost: exited with 3',
    ]);
  });
});

it('onceEach logs each text once', () => {
  const warn = onceEach(log);
  for (const text of ['a', 'b', 'a', 'b']) warn(text);
  expect(logged).toEqual(['a', 'b']);
});
