import { expect, it, vi } from 'vitest';
import { handleSignals } from '../../../../src/bootstrap/roles/run-primary.js';
import { availableCores } from '../../../../src/contract/process/machine.js';
import type { Supervisor } from '../../../../src/primary/supervisor.js';

/** The signals of a primary whose reload never ends. */
function start() {
  vi.useFakeTimers();
  const listeners = new Map<string | symbol, () => void>();
  vi.spyOn(process, 'on').mockImplementation((signal, listener) => {
    listeners.set(signal, listener as () => void);
    return process;
  });
  const warnings: string[] = [];
  let desired = 1;
  const supervisor = {
    reloading: true,
    snapshot: () => ({ desired }),
    scale: (workers: number) => Promise.resolve((desired = workers)),
    stop: () => {},
  } as unknown as Supervisor;
  handleSignals(
    supervisor,
    (_, event) => void warnings.push((event as { message: string }).message),
  );
  return { signal: (name: string) => listeners.get(name)!(), warnings, desired: () => desired };
}

it('warns once a minute of a SIGHUP that is refused, with the number of those between', () => {
  const { signal, warnings } = start();
  for (let times = 0; times < 2_000; times += 1) signal('SIGHUP');
  expect(warnings).toEqual(['SIGHUP: a reload is already in progress']);
  vi.advanceTimersByTime(60_000);
  signal('SIGHUP');
  expect(warnings[1]).toContain('and 1999 more since');
});

it('adds workers by SIGTTIN up to four for each core, and removes them by SIGTTOU down to one', () => {
  const { signal, warnings, desired } = start();
  const most = 4 * availableCores();
  for (let times = 0; times < most + 20; times += 1) signal('SIGTTIN');
  expect(desired()).toBe(most);
  expect(warnings).toEqual([
    `SIGTTIN: cannot scale to ${most + 1} workers; 1 to ${most} are allowed`,
  ]);
  for (let times = 0; times < most; times += 1) signal('SIGTTOU');
  expect(desired()).toBe(1);
  expect(warnings[1]).toContain('cannot scale to 0 workers');
});
