import type { EmitEvent } from '../events/index.js';
import type { ReloadResult } from '../snapshot/index.js';
import type { Program, Release } from './release.js';
import type { Slot } from './slot.js';
import type { Succession } from './succession.js';
import type { Waiting } from './waiting.js';
import type { WorkerTable } from './worker-table.js';

/** A reload under way. */
interface Course {
  readonly generation: number;
  readonly startedAt: number;
  /** Slots that come last: their workers wait for the result. */
  readonly askers: Set<Slot>;
}

/**
 * Replaces every worker by one of the program as it is on disk now, slot by
 * slot. At the first new worker that fails it is aborted: whatever has not been
 * replaced by then serves on.
 */
export class Reload {
  #generation = 0;
  #course: Course | undefined;
  #waiting: Waiting<ReloadResult>[] = [];

  constructor(
    private readonly table: WorkerTable,
    private readonly succession: Succession,
    private readonly program: Program,
    private readonly emit: EmitEvent,
  ) {}

  /**
   * Starts a reload; one that is under way is everybody's.
   *
   * @param waiting is told of the result: if it leaves, once the last new worker has taken over,
   * else once the last old one is gone as well.
   */
  run(reason: string, waiting: Waiting<ReloadResult>, asker?: Slot): void {
    this.#waiting.push(waiting);
    const askers = this.#course?.askers ?? new Set();
    if (asker !== undefined) askers.add(asker);
    if (this.#course !== undefined) return;
    const course = { generation: ++this.#generation, startedAt: performance.now(), askers };
    this.#course = course;
    this.emit('reload-started', { generation: course.generation, reason });
    let release: Release;
    try {
      release = this.program.resolve(course.generation);
    } catch (error) {
      return this.#end(course, (error as Error).message);
    }
    this.#replaceNext(course, release);
  }

  #replaceNext(course: Course, release: Release): void {
    // Looked at anew each time: the cluster may have been scaled meanwhile.
    const slots = this.#pending(course);
    const slot = slots.find((each) => !course.askers.has(each)) ?? slots[0];
    if (slot === undefined) {
      this.table.release = release;
      return this.#end(course, null);
    }
    this.succession.request({
      slot,
      cause: 'reload',
      release,
      tookOver: () => {
        if (this.#pending(course).length === 0) this.#tell(course, null, true);
      },
      lingers: () => course.askers.has(slot) && this.#pending(course).length > 0,
      ended: (failure) => {
        if (failure === null) return this.#replaceNext(course, release);
        this.#end(course, `worker=${slot.index} gen=${course.generation}: ${failure}`);
      },
    });
  }

  #pending({ generation }: Course): Slot[] {
    return this.table.slots.filter((slot) => slot.release.generation !== generation);
  }

  #end(course: Course, failure: string | null): void {
    this.#course = undefined;
    const result = resultOf(course, failure);
    this.table.reloads[result.outcome] += 1;
    this.emit('reload-ended', { ...result, durationMs: performance.now() - course.startedAt });
    this.#tell(course, failure, false);
  }

  #tell(course: Course, failure: string | null, leavingOnly: boolean): void {
    const told = this.#waiting.filter(({ leaving }) => leaving || !leavingOnly);
    this.#waiting = this.#waiting.filter((each) => !told.includes(each));
    for (const { done } of told) done(resultOf(course, failure));
  }
}

function resultOf({ generation }: Course, failure: string | null): ReloadResult {
  return { outcome: failure === null ? 'completed' : 'aborted', generation, reason: failure };
}
