import { styleText } from 'node:util';
import type { LogLevel } from '../../options/index.js';
import type { LineFormat } from './line-format.interface.js';

type Colour = Parameters<typeof styleText>[0];

const COLOURS: Readonly<Record<LogLevel, Colour>> = {
  info: 'green',
  warn: 'yellow',
  error: 'red',
};

/** Text with colours only on a terminal, and only if `NO_COLOR` is not set. */
export const TEXT_FORMAT: LineFormat = {
  streams: { info: 'out', warn: 'err', error: 'err' },
  line({ level, text }, stream) {
    const time = new Date().toISOString();
    if (stream?.isTTY !== true || process.env['NO_COLOR']) {
      return `${time} ${level.padEnd(5)} [cluster] ${text}`;
    }
    // The code above has checked the stream; styleText() would only check standard output.
    const paint = (colour: Colour, part: string) =>
      styleText(colour, part, { validateStream: false });
    return `${paint('dim', time)} ${paint(COLOURS[level], `${level.padEnd(5)} [cluster]`)} ${text}`;
  },
};
