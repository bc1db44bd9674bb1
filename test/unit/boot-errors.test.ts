import { beforeEach, describe, expect, it } from 'vitest';
import { BootErrors } from '../../src/primary/boot-errors.js';

let errors: BootErrors;
beforeEach(() => (errors = new BootErrors()));

/** Forks a worker of the slot; returns whether it prints its error, and how it fails by one. */
function fork(slot: number, generation = 0) {
  const printsBootError = errors.mayPrint(slot, generation);
  const fail = (message: string | null) =>
    errors.failed({
      identity: { slot },
      error: message === null ? null : { name: 'Error', message, stack: `Error: ${message}\n at` },
      printsBootError,
    });
  return { prints: printsBootError, fail };
}

describe('an error that keeps workers from coming up', () => {
  it('is printed by one of those that start together, and by none after it', () => {
    const [first, second] = [fork(0), fork(1)];
    expect([first.prints, second.prints]).toEqual([true, false]);
    second.fail('no database');
    expect(fork(1).prints).toBe(false);
    first.fail('no database');
    expect([fork(0).prints, fork(1).prints]).toEqual([false, false]);
  });

  it('is reported with its stack once, and in short from then on', () => {
    const [first, second] = [fork(0), fork(1)];
    expect(first.fail('no database')).toHaveProperty('stack');
    expect(second.fail('no database')).toEqual({ name: 'Error', message: 'no database' });
    expect(fork(0).fail('no queue')).toHaveProperty('stack');
  });

  it('is printed at the next attempt where it is another than the one that was printed', () => {
    const [first, second] = [fork(0), fork(1)];
    first.fail('no database');
    second.fail('no queue');
    expect([fork(0).prints, fork(1).prints]).toEqual([false, true]);
  });

  it('is printed by the next worker where the one that was to print it ended without a word', () => {
    fork(0).fail(null);
    expect(fork(0).prints).toBe(true);
  });

  it('has what a worker kept back shown once, until every slot that fails of it has come up', () => {
    const mayShow = (slot: number, message: string | null) =>
      errors.mayShow(
        {
          identity: { slot },
          error: message === null ? null : { name: 'Error', message },
          printsBootError: false,
        },
        'killed',
      );
    expect([mayShow(0, 'no database'), mayShow(1, 'no database')]).toEqual([true, false]);
    expect([mayShow(1, 'no queue'), mayShow(2, null), mayShow(2, null)]).toEqual([
      true,
      true,
      false,
    ]);
    errors.cameUp(0);
    errors.cameUp(3);
    expect(mayShow(0, 'no database')).toBe(false);
    for (const slot of [0, 1]) errors.cameUp(slot);
    expect(mayShow(0, 'no database')).toBe(true);
    errors.mayPrint(0, 1); // of a reload
    expect(mayShow(0, 'no database')).toBe(true);
  });

  it('is left to the worker that prints it where Node alone knows its place', () => {
    const error = { name: 'SyntaxError', message: "Unexpected token ';'" };
    const mayShow = (slot: number, printsBootError: boolean) =>
      errors.mayShow({ identity: { slot }, error, printsBootError }, 'exited with code 1');
    const prints = [errors.mayPrint(0, 0), errors.mayPrint(1, 0)];
    expect(prints).toEqual([true, false]);
    expect([mayShow(1, false), mayShow(0, true), mayShow(1, false)]).toEqual([false, true, false]);
  });

  it('is news once a worker has come up, and in each reload', () => {
    fork(0).fail('no database');
    errors.cameUp();
    const second = fork(0);
    expect(second.prints).toBe(true);
    expect(second.fail('no database')).toHaveProperty('stack');

    const candidate = fork(0, 1);
    expect(candidate.prints).toBe(true);
    expect(candidate.fail('no database')).toHaveProperty('stack');
    expect(fork(1, 1).prints).toBe(false);
    expect(fork(1, 2).prints).toBe(true);
  });
});
