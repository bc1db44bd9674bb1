import { Readable } from 'node:stream';
import {
  CLUSTER_EVENT_NAMES,
  type ClusterEventName,
  type ClusterEventMap,
  describeEvent,
} from '../contract/events/index.js';
import { oneLine } from '../contract/errors/index.js';
import type { LogLevel } from '../contract/options/index.js';
import type { PrimaryStats } from '../contract/snapshot/index.js';
import { type ClusterReport, clusterReport } from './cluster-status.js';
import type { Controlled } from './controlled-cluster.js';
import { tooMany } from './route.js';

/** A stream with more unread bytes is destroyed. A sample of 256 workers has 130 KB. */
const MAX_UNREAD_BYTES = 512 * 1024;

/** Maximum of open streams. Below the maximum of requests, so that other requests are still answered. */
const MAX_READERS = 24;

const SAMPLE_MS = 1_000;

/** The events in the stream, without `worker-exit`, which would report each end of a worker twice. */
const TOLD = CLUSTER_EVENT_NAMES.filter((name) => name !== 'worker-exit');

/** The data of an `event: log`. */
export interface StreamedEvent {
  /** ISO 8601, UTC. */
  readonly at: string;
  readonly name: ClusterEventName;
  readonly level: LogLevel;
  /** One line: the line in the log, if the event is logged. */
  readonly text: string;
  readonly event: ClusterEventMap[ClusterEventName];
}

/** The data of an `event: sample`, which is sent at the beginning and then once a second. */
export interface Sample {
  /** ISO 8601, UTC. */
  readonly at: string;
  readonly cluster: ClusterReport;
  readonly primary: PrimaryStats | null;
}

/** The open streams of server-sent events. While no stream is open, no timer or listener runs. */
export class EventStream {
  readonly #readers = new Set<Readable>();
  readonly #listeners = TOLD.map((name) => ({
    name,
    tell: (event: ClusterEventMap[typeof name]) => this.#tell(name, event),
  }));
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly of: Pick<Controlled, 'cluster' | 'events'>) {}

  /** Opens a stream. A slow client's stream is destroyed. @throws Refusal if too many are open. */
  open(): Readable {
    if (this.#readers.size >= MAX_READERS) {
      throw tooMany(`${MAX_READERS} event streams are open already`);
    }
    const reader = new Readable({ read: () => {}, highWaterMark: MAX_UNREAD_BYTES });
    this.#readers.add(reader);
    reader.once('close', () => this.#leave(reader));
    if (this.#readers.size === 1) this.#begin();
    this.#push(reader, this.#sample());
    return reader;
  }

  end(): void {
    for (const reader of this.#readers) reader.push(null);
  }

  #begin(): void {
    for (const { name, tell } of this.#listeners) this.of.events.on(name, tell);
    this.#timer = setInterval(() => this.#pushAll(this.#sample()), SAMPLE_MS).unref();
  }

  #leave(reader: Readable): void {
    this.#readers.delete(reader);
    if (this.#readers.size > 0) return;
    clearInterval(this.#timer);
    for (const { name, tell } of this.#listeners) this.of.events.off(name, tell);
  }

  #tell<N extends ClusterEventName>(name: N, event: ClusterEventMap[N]): void {
    const { level, text } = describeEvent(name, event);
    const told: StreamedEvent = { at: now(), name, level, text: oneLine(text), event };
    this.#pushAll(frame('log', told));
  }

  #sample(): string {
    const snapshot = this.of.cluster.snapshot();
    const { primary } = snapshot;
    return frame('sample', { at: now(), cluster: clusterReport(snapshot), primary });
  }

  #pushAll(text: string): void {
    for (const reader of this.#readers) this.#push(reader, text);
  }

  #push(reader: Readable, text: string): void {
    if (reader.readableLength + text.length > MAX_UNREAD_BYTES) reader.destroy();
    else reader.push(text);
  }
}

function frame(event: 'log' | 'sample', data: StreamedEvent | Sample): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

function now(): string {
  return new Date().toISOString();
}
