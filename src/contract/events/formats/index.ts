import type { LogFormat } from '../../options/index.js';
import { JSON_FORMAT } from './json-line.js';
import type { LineFormat } from './line-format.interface.js';
import { nestFormat } from './nest-line.js';
import { pinoFormat } from './pino-line.js';
import { TEXT_FORMAT } from './text-line.js';

export type { LineFormat, LogEntry, Terminal } from './line-format.interface.js';

/** A format with state is created on request, so that the state costs nothing with the other formats. */
const FORMATS: Readonly<Record<LogFormat, () => LineFormat>> = {
  text: () => TEXT_FORMAT,
  json: () => JSON_FORMAT,
  pino: pinoFormat,
  nest: nestFormat,
};

export function lineFormat(format: LogFormat): LineFormat {
  return FORMATS[format]();
}
