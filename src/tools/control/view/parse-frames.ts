import type { Readable } from 'node:stream';

/** Maximum length of an event, in characters. A longer event throws. A sample of 256 workers has 130 KB. */
const MAX_FRAME_LENGTH = 4 * 1024 * 1024;

/** Parses server-sent events whose data is JSON in one line. Skips everything else. */
export async function* parseFrames(
  source: Readable,
): AsyncGenerator<{ readonly type: string; readonly data: unknown }> {
  let rest = '';
  source.setEncoding('utf8');
  for await (const chunk of source as AsyncIterable<string>) {
    const frames = (rest + chunk).split('\n\n');
    rest = frames.pop()!;
    if (rest.length > MAX_FRAME_LENGTH) throw new Error('an event is too long');
    for (const frame of frames) {
      const [, type, data] = /^event: (\w+)\ndata: (.*)$/.exec(frame) ?? [];
      if (data !== undefined) yield { type: type!, data: JSON.parse(data) };
    }
  }
}
