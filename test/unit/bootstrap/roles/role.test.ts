import { describe, expect, it } from 'vitest';
import { detectRole, identityIn, workerIdentity } from '../../../../src/bootstrap/roles/role.js';

const assigned = {
  NESTJS_CLUSTER_WORKER: JSON.stringify({ slot: 3, generation: 2, workers: 4, primaryPid: 40 }),
};

describe('the identity of a process', () => {
  it('is the one that its primary has given it', () => {
    expect(identityIn(assigned, { pid: 4711, ppid: 40 })).toEqual({
      slot: 3,
      pid: 4711,
      generation: 2,
    });
  });

  it('is not that of the worker that has started it', () => {
    expect(identityIn(assigned, { pid: 4712, ppid: 4711 })).toBeUndefined();
  });

  it.each([
    '',
    '1',
    'null',
    'true',
    '{}',
    '[]',
    '"x"',
    '{"slot":3',
    '{"slot":3,"generation":2}',
    '{"slot":"3","generation":2,"primaryPid":40}',
  ])('is none where %j stands in the variable, and it does what it would without', (text) => {
    const env = { NESTJS_CLUSTER_WORKER: text };
    expect(identityIn(env, { pid: 4711, ppid: 40 })).toBeUndefined();
    expect(detectRole(env)).toEqual({ name: 'parent' });
  });

  it('is none without a cluster', () => {
    expect(identityIn({}, { pid: 4711, ppid: 40 })).toBeUndefined();
    expect(workerIdentity()).toBeUndefined();
  });
});
