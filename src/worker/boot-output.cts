// Keeps back what a worker writes to standard output while it comes up. Loaded by early-boot.cts,
// before anything of the app.
//
// A descriptor cannot be exchanged in a process that runs, so the functions that write are: those of
// process.stdout and of `fs` (pino writes by fs.writeSync). The lines go into a pipe at once, one by
// one: those of a worker that is killed are in the kernel by then.
import fs = require('node:fs');
import nodeModule = require('node:module');
import net = require('node:net');
import util = require('node:util');
import lineSieve = require('./line-sieve.cjs');
import type { BootOutputAssignment } from '../ipc/assignment.js' with {
  'resolution-mode': 'import',
};
import type { KeptOutput } from './kept-output.js' with { 'resolution-mode': 'import' };

const STDOUT = 1;

/** A primary that does not read holds up a boot no longer than this, then nothing is kept back. */
const PATIENCE_MS = 500;
const PAUSE_MS = 5;

type Data = string | Uint8Array;

/** Sends what is kept back to the primary, which shows it if the worker does not come up. */
class BootOutput implements KeptOutput {
  #open = true;
  #patienceMs = PATIENCE_MS;
  readonly #pause = new Int32Array(new SharedArrayBuffer(4));
  readonly #sieve = new lineSieve.LineSieve();
  readonly #socket: net.Socket;
  readonly #writeSync = fs.writeSync;
  readonly #undo: (() => void)[] = [];

  constructor(
    private readonly descriptor: number,
    private readonly printsBootError: boolean,
  ) {
    // Has the descriptor not block. It is written to by `fs`, whose bytes are gone when that returns.
    this.#socket = new net.Socket({ fd: descriptor, readable: false, writable: true }).unref();
    this.#socket.on('error', () => {});
  }

  keepText(text: string): boolean {
    const bytes = Buffer.from(text);
    return this.#keep(bytes) === bytes.length;
  }

  keepError(error: unknown): boolean {
    if (this.printsBootError && isWithoutPlace(error)) return false;
    return this.keepText(`${util.inspect(error)}\n`);
  }

  end(): void {
    if (!this.#open) return;
    this.#open = false;
    for (const undo of this.#undo.splice(0)) undo();
    // Who has imported them by name is given the new ones by this alone.
    nodeModule.syncBuiltinESMExports();
    this.#socket.destroy();
  }

  /** Has everything that this thread writes to standard output go through here. */
  divert(): void {
    this.#divertStream();
    const write = (bytes: Buffer, rest: unknown[], data: unknown): void => {
      const done = rest.at(-1) as (error: unknown, written?: number, data?: unknown) => void;
      try {
        process.nextTick(done, null, this.#take(bytes), data);
      } catch (error) {
        process.nextTick(done, error);
      }
    };
    this.#exchange('writeSync', (data: Data, ...rest) => this.#take(bytesOf(data, rest)));
    this.#exchange('writevSync', (buffers: Buffer[]) => this.#take(Buffer.concat(buffers)));
    this.#exchange('write', (data: Data, ...rest) => write(bytesOf(data, rest), rest, data));
    this.#exchange('writev', (data: Buffer[], ...rest) => write(Buffer.concat(data), rest, data));
    nodeModule.syncBuiltinESMExports();
  }

  #exchange(
    name: 'write' | 'writeSync' | 'writev' | 'writevSync',
    take: (data: never, ...rest: unknown[]) => unknown,
  ): void {
    const original = fs[name] as (...args: unknown[]) => unknown;
    const taking = (...args: unknown[]): unknown => {
      const [fd, data, ...rest] = args;
      // Without its callback a call is an error, and Node says so.
      const isValid = name.endsWith('Sync') || typeof rest.at(-1) === 'function';
      if (!this.#open || fd !== STDOUT || !isValid) return original(...args);
      return take(data as never, ...rest);
    };
    // util.promisify() finds in them how the callback is called.
    Object.defineProperties(taking, Object.getOwnPropertyDescriptors(original));
    Reflect.set(fs, name, taking);
    this.#undo.push(() => {
      if (fs[name] === (taking as unknown)) Reflect.set(fs, name, original);
    });
  }

  /** Of a terminal and a pipe the stream writes by itself. */
  #divertStream(): void {
    const { stdout } = process;
    const original = Reflect.get(stdout, 'write') as (...args: unknown[]) => unknown;
    const own = Object.getOwnPropertyDescriptor(stdout, 'write');
    const taking = (data: unknown, ...rest: unknown[]): unknown => {
      const pass = (...args: unknown[]): unknown => original.apply(stdout, args);
      const known = typeof data === 'string' || data instanceof Uint8Array;
      if (!this.#open || !known) return pass(data, ...rest);
      this.#take(bytesOf(data, rest), (part) => {
        pass(part);
        return part.length;
      });
      const done = rest.findLast((each) => typeof each === 'function');
      if (done) process.nextTick(done as () => void);
      return true;
    };
    stdout.write = taking as typeof stdout.write;
    this.#undo.push(() => {
      // The app may have put its own around ours: then ours stays in, and passes on.
      if (stdout.write !== taking) return;
      if (own) Object.defineProperty(stdout, 'write', own);
      else Reflect.deleteProperty(stdout, 'write');
    });
  }

  /**
   * @param pass writes what is not kept, and says how much of it.
   * @returns how much was written, as the functions of `fs` do.
   */
  #take(bytes: Buffer, pass = (part: Buffer): number => this.#writeSync(STDOUT, part)): number {
    let taken = 0;
    for (const part of this.#sieve.sift(bytes)) {
      const kept = part.loud ? 0 : this.#keep(part.bytes);
      taken += kept;
      const rest = part.bytes.subarray(kept);
      if (rest.length === 0) continue;
      try {
        const passed = pass(rest);
        taken += passed;
        if (passed < rest.length) break;
      } catch (error) {
        if (taken === 0) throw error;
        break; // who writes the rest has it thrown
      }
    }
    return taken;
  }

  /** @returns how many bytes the primary has been given; after less than all it is given nothing more. */
  #keep(bytes: Buffer): number {
    let kept = 0;
    while (this.#open && kept < bytes.length) {
      try {
        kept += this.#writeSync(this.descriptor, bytes, kept);
      } catch (error) {
        const full = (error as NodeJS.ErrnoException).code === 'EAGAIN';
        if (full && this.#patienceMs > 0) {
          this.#patienceMs -= PAUSE_MS;
          Atomics.wait(this.#pause, 0, 0, PAUSE_MS);
        } else {
          this.end(); // the primary is gone, or is too far behind
        }
      }
    }
    return kept;
  }
}

/** The bytes that a call of fs.write() or stream.write() means by its arguments. */
function bytesOf(data: Data, rest: readonly unknown[]): Buffer {
  if (typeof data === 'string') {
    const encoding = rest.find((each) => typeof each === 'string' && Buffer.isEncoding(each));
    return Buffer.from(data, encoding as BufferEncoding | undefined);
  }
  const [first, second] = rest;
  const range =
    typeof first === 'object' && first !== null ? first : { offset: first, length: second };
  const { offset, length } = range as { offset?: unknown; length?: unknown };
  const from = typeof offset === 'number' ? offset : 0;
  const size = typeof length === 'number' ? length : data.byteLength - from;
  return Buffer.from(data.buffer, data.byteOffset + from, size);
}

/** As `uncaught.ts` has it. */
function isWithoutPlace(error: unknown): boolean {
  return (
    error instanceof SyntaxError && /^SyntaxError.*\n\s+at .*\(node:/.test(String(error.stack))
  );
}

/** Starts to keep back; `undefined` where that cannot be. */
function keepBootOutput(
  { descriptor, divert }: BootOutputAssignment,
  printsBootError: boolean,
): KeptOutput | undefined {
  try {
    const output = new BootOutput(descriptor, printsBootError);
    if (divert) output.divert();
    return output;
  } catch {
    return undefined; // everything is seen then
  }
}

export = { keepBootOutput };
