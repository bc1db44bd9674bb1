import type { ChildProcess } from 'node:child_process';
import { getSystemErrorName } from 'node:util';

/** Node's internal handle of the channel, which is the same on Node 20 to 26. */
interface ChannelHandle {
  onread: (this: unknown, ...args: unknown[]) => unknown;
  writeUtf8String: (this: unknown, request: WriteRequest, ...rest: unknown[]) => number;
}

interface WriteRequest {
  oncomplete?: (this: unknown, status: number, ...rest: unknown[]) => unknown;
}

/** Write errors on a closed channel. Ignored, because the worker's exit follows. */
const ENDED: ReadonlySet<string> = new Set(['EPIPE', 'ECONNRESET', 'ECANCELED']);

/**
 * Guards both directions of a worker's channel.
 *
 * Reading: Node throws on a line that is not JSON, and on a forged internal message. No caller could
 * catch this error, so it would end the primary.
 *
 * Writing: Node ignores the error of a failed write (ENOMEM, ETOOMANYREFS). If a connection was
 * sent with the message, Node waits for the worker's acknowledgement and holds back all later
 * messages to the worker.
 *
 * @param broken gets the error. Later messages may be corrupt.
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
  // If Node lacks these internals, a hostile worker can end the primary, as with plain node:cluster.
  if (typeof handle?.onread === 'function') handle.onread = guarded(handle.onread);
  if (typeof handle?.writeUtf8String === 'function') watchWrites(handle, broken);
  // Guards only Node's internal messages. Errors in the user's own listeners stay visible.
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
    // Node sets `oncomplete` after this call. libuv completes the write later.
    process.nextTick(() => {
      const { oncomplete } = request;
      if (oncomplete === undefined) return;
      request.oncomplete = function (status, ...others) {
        const code = status < 0 ? getSystemErrorName(status) : undefined;
        if (code !== undefined && !ENDED.has(code)) {
          broken(new Error(`a message could not be written: ${code}`));
        }
        return Reflect.apply(oncomplete, this, [status, ...others]);
      };
    });
    return error;
  };
}
