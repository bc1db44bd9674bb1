import {
  restoreError,
  type Task,
  type TaskError,
  TaskTimeoutException,
} from '../../../offload/index.js';
import { unpack } from './encoding.js';
import { readReply, type Reply } from './messages.js';

/** A `foreign` reply was for another process. A `late` reply came after the end of its call. */
type DroppedReply = 'malformed' | 'foreign' | 'late';

interface PendingCall {
  readonly task: Task;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  readonly timer: NodeJS.Timeout;
  /** Sends the call to consumers that have its method. */
  redirect: (() => void) | undefined;
}

/** The calls of this process that wait for their results. Each call has a timeout. */
export class PendingCalls {
  readonly #pending = new Map<string, PendingCall>();
  #calls = 0;

  constructor(
    /** The address of this process, new at each start. */
    private readonly process: string,
    private readonly dropped: (why: DroppedReply) => void,
  ) {}

  /** `result` rejects with {@link TaskTimeoutException} if no reply comes in time. */
  begin(
    task: Task,
    timeoutMs: number,
    redirect?: () => void,
  ): { readonly id: string; readonly result: Promise<unknown> } {
    const id = `${this.process}-${++this.#calls}`;
    const result = new Promise((resolve, reject) => {
      const expire = () => this.fail(id, new TaskTimeoutException(task.name, timeoutMs));
      const timer = setTimeout(expire, timeoutMs);
      this.#pending.set(id, { task, resolve, reject, timer, redirect });
    });
    return { id, result };
  }

  get size(): number {
    return this.#pending.size;
  }

  has(id: string): boolean {
    return this.#pending.has(id);
  }

  fail(id: string, error: unknown): void {
    this.#take(id)?.reject(error);
  }

  failAll(errorFor: (task: Task) => unknown): void {
    for (const [id, { task }] of this.#pending) this.fail(id, errorFor(task));
  }

  /** Handles a reply. Checks the reply, because anyone who can write to Redis can send replies. */
  settle(text: string): void {
    const reply = readReply(text);
    if (reply === undefined) return this.dropped('malformed');
    if (!reply.id.startsWith(`${this.process}-`)) return this.dropped('foreign');
    if (!reply.ok && reply.unknown) return this.#redirect(reply.id);
    const call = this.#take(reply.id);
    // The caller has stopped waiting, or the job ran twice.
    if (call === undefined) return this.dropped('late');
    try {
      this.#answer(call, reply);
    } catch {
      this.dropped('malformed');
      call.reject(new Error(`the reply to ${call.task.name} cannot be read`));
    }
  }

  /** Redirects a call to its method's own queue, at most once: all consumers of that queue have the method. */
  #redirect(id: string): void {
    const call = this.#pending.get(id);
    if (call?.redirect === undefined) return this.dropped('late');
    const { redirect } = call;
    call.redirect = undefined;
    redirect();
  }

  #answer({ task, resolve, reject }: PendingCall, reply: Reply): void {
    if (reply.ok) return resolve(unpack(reply.value));
    if (reply.timeoutMs !== undefined) {
      return reject(new TaskTimeoutException(task.name, reply.timeoutMs));
    }
    reject(restoreError(unpack(reply.error) as TaskError));
  }

  #take(id: string): PendingCall | undefined {
    const call = this.#pending.get(id);
    clearTimeout(call?.timer);
    this.#pending.delete(id);
    return call;
  }
}
