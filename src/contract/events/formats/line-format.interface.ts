import type { LogLevel } from '../../options/index.js';
import type { ClusterEventName, ClusterEventMap } from '../event-map.js';

/** An event that is to be formatted as a line. */
export interface LogEntry {
  readonly name: ClusterEventName;
  readonly event: ClusterEventMap[ClusterEventName];
  readonly level: LogLevel;
  /** The event in words, on one line, without control characters. */
  readonly text: string;
}

/** The property of a stream that decides whether a line has colours. */
export type Terminal = Pick<NodeJS.WriteStream, 'isTTY'>;

/** One of the formats of the log. */
export interface LineFormat {
  /** The standard stream for the lines of each level. */
  readonly streams: Readonly<Record<LogLevel, 'out' | 'err'>>;
  /**
   * A line, without its line break.
   *
   * @param stream the stream that gets the line; without a stream the line has no colours.
   */
  line(entry: LogEntry, stream: Terminal | undefined): string;
}
