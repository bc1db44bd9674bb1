import type { Niceness } from './niceness.js';
import type { PoolThread, ThreadEvents } from './pool-thread.js';
import type { Offers } from '../thread/offers.js';

export interface PoolOptions {
  /** How much nicer than the process a thread is while it computes. */
  readonly niceIncrement: number;
  /** `Infinity` = Node's own limit. */
  readonly heapLimitBytes: number;
  /** Threads at most. */
  readonly threads: number;
  /** Threads that are kept. */
  readonly minThreads: number;
}

/** What is told of a pool. */
export interface ThreadPoolEvents {
  /** There may be more capacity, or none to come. */
  changed(): void;
  /** Something an operator should know; one line. */
  warning(message: string): void;
  /** The same, where the threads of all workers have it in common. */
  warnOfAll(message: string): void;
  /** What is wrong will not pass: another process should take this one's place. */
  unfit(reason: string): void;
}

/** The parts of a thread that the pool uses. */
export type PooledThread = Pick<
  PoolThread,
  | 'state'
  | 'report'
  | 'exited'
  | 'since'
  | 'isIdle'
  | 'takesOffer'
  | 'becomeReady'
  | 'run'
  | 'offer'
  | 'leave'
  | 'end'
>;

/** @param place of its offers. */
export type OpenThread = (
  offers: Offers,
  place: number,
  events: ThreadEvents,
  niceness: Niceness,
) => PooledThread;
