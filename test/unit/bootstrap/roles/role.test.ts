import { expect, it } from 'vitest';
import { detectRole, identityIn, workerIdentity } from '../../../../src/bootstrap/roles/role.js';

const assigned = {
  NESTJS_CLUSTER_WORKER: JSON.stringify({ slot: 3, generation: 2, workers: 4, primaryPid: 40 }),
};

it('a worker has the identity that its primary assigned', () => {
  const identity = { slot: 3, pid: 4711, generation: 2 };
  expect(identityIn(assigned, { pid: 4711, ppid: 40 })).toEqual(identity);
});

it('a process that a worker started has no identity', () => {
  expect(identityIn(assigned, { pid: 4712, ppid: 4711 })).toBeUndefined();
});

it.each([
  undefined,
  '',
  'null',
  '[]',
  '{"slot":3',
  '{"slot":3,"generation":2}',
  '{"slot":"3","generation":2,"primaryPid":40}',
])('a process with the variable %j is no worker', (text) => {
  const env = text === undefined ? {} : { NESTJS_CLUSTER_WORKER: text };
  expect(identityIn(env, { pid: 4711, ppid: 40 })).toBeUndefined();
  expect(detectRole(env)).toEqual({ name: 'parent' });
  expect(workerIdentity()).toBeUndefined();
});
