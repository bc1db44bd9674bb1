import { isatty } from 'node:tty';
import type { EmitEvent } from '../../contract/log/events.js';
import { OnceAMinute } from '../../contract/errors/index.js';
import { MAX_WORKERS } from '../../contract/options/schema.js';
import { availableCores } from '../../contract/process/machine.js';
import type { Supervisor } from '../../primary/supervisor.js';

const STOP_SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/** Signals that add or remove a worker, as in Unicorn, Puma and Gunicorn. */
const SCALE_SIGNALS = { SIGTTIN: 1, SIGTTOU: -1 } as const;

export function obeySignals(supervisor: Supervisor, emit: EmitEvent): void {
  // Checked at the start, because isatty() returns false once the terminal is closed and SIGHUP comes.
  const inTerminal = isatty(0);
  const refusals = new OnceAMinute((message) => emit('warning', { message }));
  const refuse = (signal: string, why: string) => refusals.say(`${signal}: ${why}`, signal);
  for (const signal of STOP_SIGNALS) {
    process.on(signal, () => supervisor.stop(signal, signal));
  }
  process.on('SIGHUP', () => {
    // In a terminal, SIGHUP means that the terminal was closed, so the program ends and does not reload.
    if (inTerminal) return supervisor.stop('SIGHUP in a terminal', 'SIGHUP');
    if (supervisor.reloading)
      refuse('SIGHUP', 'a reload is under way already; this starts no other');
    else void supervisor.reload('SIGHUP');
  });
  for (const [signal, step] of Object.entries(SCALE_SIGNALS)) {
    process.on(signal, () => {
      const workers = supervisor.snapshot().desired + step;
      // Repeated signals would start so many processes that the primary answers no one.
      const most = Math.min(MAX_WORKERS, 4 * availableCores());
      if (workers < 1 || (step > 0 && workers > most)) {
        return refuse(signal, `there cannot be ${workers} workers, only 1 to ${most}`);
      }
      supervisor.scale(workers, signal).catch((error: Error) => refuse(signal, error.message));
    });
  }
}
