import { clean, InspectionError } from '../../contract/errors/index.js';

/** The format of a frame is described in `worker/watchdog/byte-sink.ts`. */
const HEADER_BYTES = 4;
const ERROR_BIT = 2 ** 31;

/** The maximum length of an error text; the rest is cut off. Workers send less. */
const MAX_ERROR_BYTES = 4_096;

/**
 * Yields the data of the frames that a worker sends, as it arrives. A frame may be larger than one
 * read. A transfer is complete only with its last frame, which is empty.
 *
 * @throws InspectionError if the worker reports an error, ends early, or sends over `maxBytes`.
 */
export async function* readFrames(
  source: AsyncIterable<Buffer>,
  maxBytes: number,
): AsyncGenerator<Buffer, void> {
  let header = Buffer.alloc(0);
  let error: Buffer | undefined;
  let left = 0;
  let total = 0;
  for await (const chunk of source) {
    for (let rest = chunk; rest.length > 0;) {
      if (left === 0) {
        const missing = HEADER_BYTES - header.length;
        header = Buffer.concat([header, rest.subarray(0, missing)]);
        rest = rest.subarray(missing);
        if (header.length < HEADER_BYTES) break;
        left = header.readUInt32BE();
        header = Buffer.alloc(0);
        if (left === 0) return;
        if (left < ERROR_BIT) continue;
        error = Buffer.alloc(0);
        left = Math.min(left - ERROR_BIT, MAX_ERROR_BYTES);
        if (left === 0) throw failed(error);
        continue;
      }
      const part = rest.subarray(0, left);
      rest = rest.subarray(part.length);
      left -= part.length;
      if (error === undefined) {
        total += part.length;
        if (total > maxBytes) throw tooLarge(maxBytes);
        yield part;
      } else {
        error = Buffer.concat([error, part]);
        if (left === 0) throw failed(error);
      }
    }
  }
  throw new InspectionError('ended', 'the worker ended before it was complete');
}

function failed(error: Buffer): InspectionError {
  return new InspectionError('failed', `the worker could not: ${clean(error.toString())}`);
}

function tooLarge(maxBytes: number): InspectionError {
  return new InspectionError(
    'too-large',
    `it is larger than ${maxBytes} bytes, the most that is passed on; take a heap profile, or a shorter one`,
  );
}
