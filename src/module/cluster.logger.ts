import { ConsoleLogger, Injectable, type LogLevel } from '@nestjs/common';
import { workerIdentity } from '../bootstrap/roles/own-identity.js';
import type { WorkerIdentity } from '../contract/snapshot/index.js';

/** Written out, since Nest before 11.1.4 has no such method whose types could be asked for. */
interface JsonLogOptions {
  readonly context: string;
  readonly logLevel: LogLevel;
  readonly writeStreamType?: 'stdout' | 'stderr';
  readonly errorStack?: unknown;
  readonly params?: Record<string, unknown>;
  readonly error?: Error;
}

/**
 * Nest's `ConsoleLogger`, whose lines say which worker wrote them: text has the slot behind the pid
 * (`[Nest] 4711 w3  - …`), JSON has `worker` (the slot) and `generation`; JSON needs Nest 11.1.4
 * for that. It takes the same options. Outside of a worker its output is Nest's own.
 */
@Injectable()
export class ClusterLogger extends ConsoleLogger {
  /** The worker whose lines these are. */
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
