import type { ChildProcess } from 'node:child_process';
import { getSystemErrorName } from 'node:util';

/** Node's end of the channel: no public name leads to it. The same on Node 20 to 26. */
interface ChannelHandle {
  onread: (this: unknown, ...args: unknown[]) => unknown;
  writeUtf8String: (this: unknown, request: WriteRequest, ...rest: unknown[]) => number;
}

interface WriteRequest {
  oncomplete?: (this: unknown, status: number, ...rest: unknown[]) => unknown;
}

/** The worker's end is closed, or ours: its exit tells the rest. */
const ENDED: ReadonlySet<string> = new Set(['EPIPE', 'ECONNRESET', 'ECANCELED']);

/**
 * Watches over both directions of a worker's channel.
 *
 * Reading: Node throws on a line that is not JSON and on a forged message of
 * its own. Nothing could catch the error, so the primary would end.
 *
 * Writing: Node ignores the error of a write that has failed (ENOMEM,
 * ETOOMANYREFS). If a connection was sent with it, Node waits for the worker's
 * acknowledgement and holds back every later message to it.
 *
 * @param broken is told of the error; the channel may be out of step after it.
 */
export function guardChannel(child: ChildProcess, broken: (error: unknown) => void): void {
  const guarded = <T extends unknown[]>(call: (this: unknown, ...args: T) => unknown) =>
    function (this: unknown, ...args: T): unknown {
      try {
        return Reflect.apply(call, this, args);
      } catch (error) {
        broken(error);
        return undefined;
      }
    };
  const symbol = Object.getOwnPropertySymbols(child).find(
    ({ description }) => description === 'kChannelHandle',
  );
  const handle = symbol && (Reflect.get(child, symbol) as ChannelHandle | null | undefined);
  // If Node changes this, a hostile worker can do what it can do to any user of node:cluster.
  if (typeof handle?.onread === 'function') handle.onread = guarded(handle.onread);
  if (typeof handle?.writeUtf8String === 'function') watchWrites(handle, broken);
  // Messages of Node itself only: what a listener of the user's throws is the user's to see.
  const emit = child.emit.bind(child) as (event: string | symbol, ...args: unknown[]) => boolean;
  const emitGuarded = guarded(emit);
  child.emit = (event: string | symbol, ...args: unknown[]) =>
    event === 'internalMessage'
      ? emitGuarded.call(child, event, ...args) === true
      : emit(event, ...args);
}

function watchWrites(handle: ChannelHandle, broken: (error: unknown) => void): void {
  const write = handle.writeUtf8String;
  handle.writeUtf8String = function (request, ...rest) {
    const error = Reflect.apply(write, this, [request, ...rest]);
    // Node sets `oncomplete` after this call, and libuv completes no write before its next turn.
    process.nextTick(() => {
      const { oncomplete } = request;
      if (oncomplete === undefined) return;
      request.oncomplete = function (status, ...others) {
        const code = status < 0 ? getSystemErrorName(status) : undefined;
        if (code !== undefined && !ENDED.has(code)) {
          broken(new Error(`a message to it could not be written: ${code}`));
        }
        return Reflect.apply(oncomplete, this, [status, ...others]);
      };
    });
    return error;
  };
}
