import type { LogLevel } from '../../options/index.js';
import type { LineFormat } from './line-format.interface.js';

const NAMES: Readonly<Record<LogLevel, string>> = { info: 'LOG', warn: 'WARN', error: 'ERROR' };

/** Nest's colours as ANSI codes. Nest's yellow for a warning differs from its yellow for a context. */
const COLOURS: Readonly<Record<LogLevel, number>> = { info: 32, warn: 33, error: 31 };

/**
 * Formats a line like Nest's `ConsoleLogger` with the context `Cluster`. Nest itself is not used,
 * because the primary does not load Nest. As in Nest, `NO_COLOR` turns colours off but a pipe does
 * not, and warnings go to standard output.
 */
export function nestFormat(): LineFormat {
  let clock: Intl.DateTimeFormat | undefined;
  return {
    streams: { info: 'out', warn: 'out', error: 'err' },
    line({ level, text }, stream) {
      // Created at first use: the formatter costs 7 MB of RSS (2 MB of them private) and 11 ms, and
      // most workers never need it.
      clock ??= new Intl.DateTimeFormat(undefined, {
        year: 'numeric',
        hour: 'numeric',
        minute: 'numeric',
        second: 'numeric',
        day: '2-digit',
        month: '2-digit',
      });
      const coloured = stream !== undefined && !process.env['NO_COLOR'];
      const inColour = (code: number | string, part: string) =>
        coloured ? `\u001b[${code}m${part}\u001b[39m` : part;
      const paint = (part: string) => inColour(COLOURS[level], part);
      return (
        `${paint(`[Nest] ${process.pid}  - `)}${clock.format(Date.now())} ` +
        `${paint(NAMES[level].padStart(7))} ${inColour('38;5;3', '[Cluster] ')}${paint(text)}`
      );
    },
  };
}
