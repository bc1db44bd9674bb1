import { expect, it } from 'vitest';
import { exitCodeAfterStop } from '../../../src/bootstrap/stay-stopped.js';

const pid = String(process.pid);

it.each([
  { manager: 'systemd', env: { INVOCATION_ID: 'a1', SYSTEMD_EXEC_PID: pid } },
  { manager: 'systemd before version 248', env: { INVOCATION_ID: 'a1' } },
  { manager: 'pm2', env: { pm_id: '0' } },
])('tells $manager not to start the cluster again, whatever the outcome', ({ env }) => {
  expect([0, 1, 143].map((outcome) => exitCodeAfterStop(outcome, env))).toEqual([193, 193, 193]);
});

it.each([
  { where: 'without a process manager', env: {} },
  {
    where: 'in a shell that a service has started',
    env: { INVOCATION_ID: 'a1', SYSTEMD_EXEC_PID: '1' },
  },
])('is the outcome $where', ({ env }) => {
  expect([0, 1, 143].map((outcome) => exitCodeAfterStop(outcome, env))).toEqual([0, 1, 143]);
});
