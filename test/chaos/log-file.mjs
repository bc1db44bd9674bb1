import { spawnSync } from 'node:child_process';
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';

const DISK_BYTES = 4 * 2 ** 20;
/** Well below: a disk is full only where the run wants it to be. */
const LONG_BYTES = 2 ** 20;
const READ_MS = 100;
/** Maximum number of lines kept: more than an hour's. Beyond it the oldest are dropped. */
const LINES_KEPT = 200_000;

/** The file that the cluster writes its log to, on a disk of its own where that is to be filled. */
export class LogFile {
  /** Descriptor for the cluster's standard output, which appends to the file. */
  descriptor;
  /** The newest lines, `{ at, text, event }`. */
  lines = [];
  #disk;
  #mounted;
  #reader;
  #timer;
  #position = 0;
  #rest = '';

  constructor(directory, { onDisk }) {
    this.#disk = join(directory, 'log');
    mkdirSync(this.#disk);
    if (onDisk) run('mount', '-t', 'tmpfs', '-o', `size=${DISK_BYTES}`, 'tmpfs', this.#disk);
    this.#mounted = onDisk;
    this.descriptor = openSync(join(this.#disk, 'cluster.log'), 'a');
    this.#reader = openSync(join(this.#disk, 'cluster.log'), 'r+');
    this.#timer = setInterval(() => this.read(), READ_MS);
  }

  /** Takes every byte that the disk has left. */
  fillDisk() {
    const filler = openSync(join(this.#disk, 'filler'), 'w');
    const block = Buffer.alloc(4_096);
    try {
      for (;;) writeSync(filler, block);
    } catch (error) {
      if (error.code !== 'ENOSPC') throw error;
    } finally {
      closeSync(filler);
    }
    // The log's last page may have room left.
    try {
      for (;;) writeSync(this.descriptor, '.\n');
    } catch (error) {
      if (error.code !== 'ENOSPC') throw error;
    }
  }

  emptyDisk() {
    rmSync(join(this.#disk, 'filler'), { force: true });
  }

  /** Lines around a time. */
  around(at, beforeMs, afterMs) {
    return this.lines.filter((line) => line.at >= at - beforeMs && line.at <= at + afterMs);
  }

  read() {
    const chunk = Buffer.alloc(fstatSync(this.#reader).size - this.#position);
    const length = readSync(this.#reader, chunk, 0, chunk.length, this.#position);
    this.#position += length;
    const texts = (this.#rest + chunk.toString('utf8', 0, length)).split('\n');
    this.#rest = texts.pop();
    // Without what filled the last page.
    for (const text of texts.map((each) => each.replace(/^\.+/, ''))) {
      if (text !== '') this.lines.push(parsed(text));
    }
    this.lines.splice(0, this.lines.length - LINES_KEPT);
    if (this.#position < LONG_BYTES || this.#rest !== '') return;
    // What is written between the two is lost to this reader alone.
    ftruncateSync(this.#reader, 0);
    this.#position = 0;
  }

  close() {
    clearInterval(this.#timer);
    this.read();
    closeSync(this.#reader);
    closeSync(this.descriptor);
    if (this.#mounted) run('umount', this.#disk);
  }
}

function parsed(text) {
  const at = Date.now();
  if (!text.startsWith('{"time"')) return { at, text };
  try {
    const event = JSON.parse(text);
    return { at, text: event.message, event };
  } catch {
    return { at, text };
  }
}

function run(command, ...args) {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr}`);
}
