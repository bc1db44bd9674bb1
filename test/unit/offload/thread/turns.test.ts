import { describe, expect, it } from 'vitest';
import { Turns } from '../../../../src/offload/thread/turns.js';

describe('the calls of a thread', () => {
  it('begin in the order in which they came, also one that comes right after a result', async () => {
    const turns = new Turns();
    const begun: string[] = [];
    const call = (name: string) =>
      turns.take(async () => {
        begun.push(name);
      });
    const first = call('first');
    const second = call('second');
    await first;
    const third = call('third');
    await Promise.all([second, third]);
    expect(begun).toEqual(['first', 'second', 'third']);
  });

  it('begin at once where nothing came before them', () => {
    const turns = new Turns();
    let hasBegun = false;
    void turns.take(async () => {
      hasBegun = true;
    });
    expect(hasBegun).toBe(true);
  });

  it('do not run at the same time, and begin after one that failed', async () => {
    const turns = new Turns();
    let running = 0;
    let most = 0;
    const call = () =>
      turns.take(async () => {
        running += 1;
        most = Math.max(most, running);
        await new Promise(setImmediate);
        running -= 1;
        throw new Error('failed');
      });
    const outcomes = await Promise.allSettled([call(), call(), call()]);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    expect(most).toBe(1);
  });

  it('have posted a result before the next one begins', async () => {
    const turns = new Turns();
    const told: string[] = [];
    const first = turns.take(async () => 'result').then((result) => told.push(result));
    const second = turns.take(async () => {
      told.push('next');
    });
    await Promise.all([first, second]);
    expect(told).toEqual(['result', 'next']);
  });
});
