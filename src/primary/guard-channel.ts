import type { ChildProcess } from 'node:child_process';

/** Node's end of the channel: no public name leads to it. The same on Node 20 to 26. */
interface ChannelHandle {
  onread: (this: unknown, ...args: unknown[]) => unknown;
}

/**
 * Keeps what a worker writes to its channel from ending the primary. Node
 * throws there on a line that is no JSON, and on messages of its own that are
 * not as it would have written them: uncaught, with nothing to catch them by.
 *
 * @param broken is told of the error; what the channel gives after it may be out of step.
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
  // Where Node has changed it, a hostile worker can do what it can do to any user of node:cluster.
  if (typeof handle?.onread === 'function') handle.onread = guarded(handle.onread);
  // Messages of Node itself only: what a listener of the user's throws is the user's to see.
  const emit = child.emit.bind(child) as (event: string | symbol, ...args: unknown[]) => boolean;
  const emitGuarded = guarded(emit);
  child.emit = (event: string | symbol, ...args: unknown[]) =>
    event === 'internalMessage'
      ? emitGuarded.call(child, event, ...args) === true
      : emit(event, ...args);
}
