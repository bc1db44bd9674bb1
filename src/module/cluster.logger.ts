import { ConsoleLogger, Injectable, type LogLevel } from '@nestjs/common';
import { workerIdentity } from '../bootstrap/roles/role.js';
import type { WorkerIdentity } from '../contract/snapshot/types.js';

/** The options of Nest's method. Declared here, because Nest before 11.1.4 lacks the method. */
interface JsonLogOptions {
  readonly context: string;
  readonly logLevel: LogLevel;
  readonly writeStreamType?: 'stdout' | 'stderr';
  readonly errorStack?: unknown;
  readonly params?: Record<string, unknown>;
  readonly error?: Error;
}

/**
 * Nest's `ConsoleLogger` with the worker in each line. Text lines have the slot after the pid
 * (`[Nest] 4711 w3  - …`). JSON lines have `worker` (the slot) and `generation`, from Nest 11.1.4
 * on. Takes the options of `ConsoleLogger`. Outside of a worker its output is the same as Nest's.
 */
@Injectable()
export class ClusterLogger extends ConsoleLogger {
  /** The worker that writes the lines. */
  protected readonly worker: WorkerIdentity | undefined = workerIdentity();

  protected override formatPid(pid: number): string {
    const text = super.formatPid(pid);
    if (this.worker === undefined) return text;
    return text.replace(/\s*- $/, ` w${this.worker.slot}$&`);
  }

  protected override getJsonLogObject(message: unknown, options: JsonLogOptions) {
    const line = super.getJsonLogObject(message, options);
    if (this.worker === undefined) return line;
    const { slot, generation } = this.worker;
    return Object.assign(line, { worker: slot, generation });
  }
}
