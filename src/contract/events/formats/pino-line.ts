import { hostname } from 'node:os';
import type { ErrorReport } from '../../ipc/index.js';
import type { LogLevel } from '../../options/index.js';
import type { WorkerIdentity } from '../../snapshot/index.js';
import { cleanJson } from './clean-json.js';
import type { LineFormat } from './line-format.interface.js';

const LEVELS: Readonly<Record<LogLevel, number>> = { info: 30, warn: 40, error: 50 };

/** Fields of an event that have another name in pino's lines. */
interface RenamedFields {
  readonly worker?: WorkerIdentity;
  readonly error?: ErrorReport | null;
  /** Written as `msg`. */
  readonly message?: string;
}

/**
 * Formats lines in pino's format. As in pino, `pid` is the process that writes, and every line goes
 * to standard output, so that `node main.js | pino-pretty` reads them all.
 */
export function pinoFormat(): LineFormat {
  const host = hostname();
  return {
    streams: { info: 'out', warn: 'out', error: 'out' },
    line({ name, event, level, text }) {
      const { worker, error, message: _, ...rest } = event as RenamedFields;
      return cleanJson({
        level: LEVELS[level],
        time: Date.now(),
        pid: process.pid,
        hostname: host,
        // The same names that docs/logging.md gives to the app's logger.
        ...(worker && {
          worker: worker.slot,
          generation: worker.generation,
          workerPid: worker.pid,
        }),
        event: name,
        ...rest,
        ...(error && { err: errorOf(error) }),
        msg: text,
      });
    },
  };
}

/** The error in the format of pino's own serializer. */
function errorOf({ name, message, stack, code }: ErrorReport) {
  return { type: name, message, stack, code };
}
