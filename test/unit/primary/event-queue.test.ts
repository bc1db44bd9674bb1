import { describe, expect, it, vi } from 'vitest';
import { EventQueue } from '../../../src/primary/supervisor.js';

describe('the event queue', () => {
  it('handles an event at once', () => {
    const handled: number[] = [];
    new EventQueue<number>((event) => handled.push(event), vi.fn()).post(1);
    expect(handled).toEqual([1]);
  });

  it('lets an event that a handler causes wait until that handler is done', () => {
    const steps: string[] = [];
    const queue: EventQueue<number> = new EventQueue((event) => {
      steps.push(`begin ${event}`);
      if (event === 1) {
        queue.post(2);
        queue.post(3);
      }
      steps.push(`end ${event}`);
    }, vi.fn());
    queue.post(1);
    expect(steps).toEqual(['begin 1', 'end 1', 'begin 2', 'end 2', 'begin 3', 'end 3']);
  });

  it('goes on after a handler that throws, and tells which event it was', () => {
    const handled: number[] = [];
    const failed = vi.fn();
    const queue: EventQueue<number> = new EventQueue((event) => {
      if (event === 1) queue.post(2);
      if (event === 1) throw new Error('no');
      handled.push(event);
    }, failed);
    queue.post(1);
    queue.post(3);
    expect(handled).toEqual([2, 3]);
    expect(failed.mock.calls).toEqual([[1, new Error('no')]]);
  });

  it('goes on where that cannot even be told', () => {
    const handled: number[] = [];
    const queue = new EventQueue<number>(
      (event) => {
        if (event === 1) throw new Error('no');
        handled.push(event);
      },
      () => {
        throw new Error('no space left on device');
      },
    );
    queue.post(1);
    queue.post(2);
    expect(handled).toEqual([2]);
  });
});
