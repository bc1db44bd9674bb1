/** The owner of an event. It decides what happens to the event while the primary is suspended. */
type Kind =
  /** A deadline of a worker. It counts only the time in which the primary was awake. */
  | 'deadline'
  /** A timer of the primary. If it comes due during a pause, it fires when the primary resumes. */
  | 'timer'
  /** Everything else. If it comes during a pause, it is handled after the primary's timers. */
  | 'world';

/** An event that is scheduled for a time, in ms. */
export interface Due {
  at: number;
  readonly order: number;
  readonly kind: Kind;
  readonly run: () => void;
  cancelled: boolean;
}

/** The length of a slice of a deadline. After a pause at least one more slice has to pass. */
const SLICE_MS = 250;

/** The time of the simulated world, and its scheduled events. */
export class Clock {
  now = 0;
  suspendedMs = 0;
  suspensions = 0;
  lastResumedAt = 0;
  /** A binary heap. */
  #heap: Due[] = [];
  #order = 0;

  /** How many ms the primary has been awake. */
  get awake(): number {
    return this.now - this.suspendedMs;
  }

  in(ms: number, run: () => void, kind: Kind = 'world'): Due {
    return this.at(this.now + ms, run, kind);
  }

  at(at: number, run: () => void, kind: Kind = 'world'): Due {
    const due = { at, order: (this.#order += 1), kind, run, cancelled: false };
    this.#heap.push(due);
    this.#up(this.#heap.length - 1);
    return due;
  }

  /** Runs the events until that time. @param goesOn stops the run if it returns `false`. */
  run(untilMs: number, goesOn: () => boolean): void {
    while (goesOn()) {
      const first = this.#heap[0];
      if (first === undefined || first.at > untilMs) {
        this.now = Math.max(this.now, untilMs);
        return;
      }
      this.#pop();
      if (first.cancelled) continue;
      this.now = Math.max(this.now, first.at);
      first.run();
    }
  }

  /**
   * Suspends the primary, and with `everybody` all workers too. Afterwards the primary's timers run
   * before it reads the messages that came during the pause.
   */
  suspend(ms: number, everybody: boolean): void {
    const until = this.now + ms;
    for (const due of this.#heap) {
      if (due.kind === 'deadline') due.at = Math.max(due.at + ms, until + SLICE_MS);
      else if (everybody) due.at += ms;
      else if (due.kind === 'timer') due.at = Math.max(due.at, until);
      else if (due.at < until + 0.5) due.at = until + 0.5;
    }
    this.#heap.sort(compare);
    this.now = until;
    this.suspendedMs += ms;
    this.suspensions += 1;
    this.lastResumedAt = until;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    heap[0] = last;
    let parent = 0;
    for (;;) {
      let least = 2 * parent + 1;
      if (least >= heap.length) return;
      if (least + 1 < heap.length && compare(heap[least + 1]!, heap[least]!) < 0) least += 1;
      if (compare(heap[parent]!, heap[least]!) <= 0) return;
      [heap[parent], heap[least]] = [heap[least]!, heap[parent]!];
      parent = least;
    }
  }

  #up(from: number): void {
    const heap = this.#heap;
    for (let child = from; child > 0;) {
      const parent = (child - 1) >> 1;
      if (compare(heap[parent]!, heap[child]!) <= 0) return;
      [heap[parent], heap[child]] = [heap[child]!, heap[parent]!];
      child = parent;
    }
  }
}

function compare(a: Due, b: Due): number {
  return a.at - b.at || a.order - b.order;
}
