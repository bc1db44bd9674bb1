import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { HubChannels } from '../../../../src/hub/client/hub-channels.js';
import { HubCore } from '../../../../src/hub/thread/hub-core.js';
import { MAX_BODY_BYTES } from '../../../../src/hub/wire/limits.js';
import { Journal } from '../../../../src/hub/thread/services/journal.js';
import { connect, idle } from '../../support/hub-workers.js';

/** Workers on one hub, each with a member of a channel. */
async function start(count: number) {
  const core = new HubCore();
  const workers = Array.from({ length: count }, (_, slot) => {
    const worker = connect(core, slot);
    const { hub } = worker;
    const warnings: string[] = [];
    const channels = new HubChannels(hub, (message) => warnings.push(message));
    const heard: string[] = [];
    const name = `worker ${slot}`;
    channels.join('chat', name, {
      said: (body, from, offset) =>
        heard.push(`${body.toString()} of ${from}${offset === undefined ? '' : ' kept'}`),
      left: (other) => heard.push(`${other} left`),
      joined: () => heard.push('joined'),
    });
    const say = (text: string, saying = {}) => channels.say(name, Buffer.from(text), saying);
    return { ...worker, channels, heard, name, say, warnings };
  });
  await idle();
  for (const { heard } of workers) expect(heard.splice(0)).toEqual(['joined']);
  return workers;
}

const keep = { forMs: 1_000, maxBytes: 1_000_000, tags: [], except: [] };

describe('a channel', () => {
  it('is heard by its other members, the echo of each in one order for all', async () => {
    const [a, b, c] = await start(3);
    const echo = (worker: typeof a, text: string) => () => worker!.heard.push(`${text} echo`);
    a!.say('1', { echo: echo(a, '1') });
    b!.say('2', { echo: echo(b, '2') });
    a!.say('3', { to: 'worker 2' });
    await idle();
    expect(a!.heard).toEqual(['1 echo', '2 of worker 1']);
    expect(b!.heard).toEqual(['1 of worker 0', '2 echo']);
    expect(c!.heard).toEqual(['1 of worker 0', '2 of worker 1', '3 of worker 0']);
  });

  it('keeps a message to itself that is too large, says so, and goes on', async () => {
    const [a, b] = await start(2);
    const echo = vi.fn();
    a!.channels.say(a!.name, Buffer.alloc(MAX_BODY_BYTES + 1), { echo });
    a!.say('small');
    await idle();
    expect(echo.mock.calls).toEqual([[undefined]]);
    expect(a!.warnings).toEqual([
      expect.stringMatching(
        /^a message does not reach other workers: it has 16777217 bytes; the hub takes 16777216/,
      ),
    ]);
    expect(b!.heard).toEqual(['small of worker 0']);
  });

  it('tells who has left, with its worker or alone', async () => {
    const [a, b, c] = await start(3);
    b!.channels.part(b!.name);
    c!.leave();
    await idle();
    expect(a!.heard).toEqual(['worker 1 left', 'worker 2 left']);
  });

  it('passes over a member that reads too slowly, and counts that', async () => {
    const [a, b, c] = await start(3);
    b!.state.unsentBytes = 9 * 1024 * 1024;
    const echoes: unknown[] = [];
    a!.say('1', { echo: (offset: unknown) => echoes.push(offset) });
    await idle();
    expect([b!.heard, c!.heard, echoes]).toEqual([[], ['1 of worker 0'], [undefined]]);
    expect(a!.hub.outcomes.get('events dropped')).toBe(1);
  });

  it('waits in its order for a hub that does not read', async () => {
    const [a, b] = await start(2);
    a!.state.writable = false;
    a!.say('1');
    a!.say('2');
    a!.state.writable = true;
    a!.say('3');
    await idle();
    expect(b!.heard).toEqual(['1', '2', '3'].map((text) => `${text} of worker 0`));
  });

  describe('waits for a hub that does not read', () => {
    afterEach(() => void vi.useRealTimers());

    async function refused() {
      const [a, b] = await start(2);
      vi.useFakeTimers();
      a!.state.writable = false;
      const echoes: string[] = [];
      const say = (text: string, bytes = 1) =>
        a!.channels.say(a!.name, Buffer.alloc(bytes, text), {
          echo: (offset) => echoes.push(`${text} ${offset === undefined ? 'lost' : 'kept'}`),
          keep: { ...keep, maxBytes: 2 ** 30 },
        });
      const heard = () => b!.heard.map((line) => line[0]);
      return { a: a!, say, echoes, heard };
    }

    it('and asks it again when it reads, and not before', async () => {
      const { a, say, echoes, heard } = await refused();
      say('1');
      say('2');
      await vi.advanceTimersByTimeAsync(4_000);
      expect(a.sent.filter(({ op }) => op === 'say')).toHaveLength(2);
      a.state.writable = true;
      a.line.drained();
      await vi.advanceTimersByTimeAsync(0);
      expect(heard()).toEqual(['1', '2']);
      say('3');
      await vi.advanceTimersByTimeAsync(0);
      expect(heard()).toEqual(['1', '2', '3']);
      expect(echoes).toEqual(['1 kept', '2 kept', '3 kept']);
      expect(vi.getTimerCount()).toBe(0);
    });

    it('for five seconds, each message from its own beginning', async () => {
      const { a, say, echoes, heard } = await refused();
      say('1');
      await vi.advanceTimersByTimeAsync(2_000);
      say('2');
      await vi.advanceTimersByTimeAsync(2_990);
      expect(echoes).toEqual([]);
      await vi.advanceTimersByTimeAsync(20);
      expect(echoes).toEqual(['1 lost']);
      await vi.advanceTimersByTimeAsync(1_980);
      expect(echoes).toEqual(['1 lost']);
      await vi.advanceTimersByTimeAsync(20);
      expect(echoes).toEqual(['1 lost', '2 lost']);
      expect([a.hub.outcomes.get('events dropped'), vi.getTimerCount()]).toEqual([2, 0]);
      expect(heard()).toEqual([]);
    });

    it('for 16 MiB, the oldest of which are lost', async () => {
      const { say, echoes } = await refused();
      for (const text of ['1', '2', '3', '4', '5']) say(text, 4 * 1024 * 1024);
      expect(echoes).toEqual(['1 lost']);
      say('6', 8 * 1024 * 1024);
      expect(echoes).toEqual(['1 lost', '2 lost', '3 lost']);
    });

    it('and is told by the next connection, once it is a member there', async () => {
      const { a, say, echoes, heard } = await refused();
      say('1');
      a.line.closed();
      say('2');
      await vi.advanceTimersByTimeAsync(1_000);
      a.state.writable = true;
      a.line.opened('a');
      await vi.advanceTimersByTimeAsync(0);
      expect(a.heard).toEqual(['joined']);
      expect(heard()).toEqual(['1', '2']);
      expect(echoes).toEqual(['1 kept', '2 kept']);
      expect(vi.getTimerCount()).toBe(0);
    });
  });

  it('has echoes without an offset where the hub is lost, and is joined again', async () => {
    const [a] = await start(1);
    const echoes: unknown[] = [];
    a!.say('1', { keep, echo: (offset: unknown) => echoes.push(offset) });
    a!.line.closed();
    expect(echoes).toEqual([undefined]);
    a!.line.opened('b');
    await idle();
    expect(a!.heard).toEqual(['joined']);
  });

  it('keeps what was said for those who were away', async () => {
    const [a, b] = await start(2);
    const offsets: string[] = [];
    for (const [text, tags, except] of [
      ['1', [], []],
      ['2', ['room'], []],
      ['3', ['other'], []],
      ['4', [], ['room']],
      ['5', [], []],
    ] as const) {
      a!.say(text, {
        keep: { ...keep, tags, except },
        echo: (offset: string) => offsets.push(offset),
      });
    }
    await idle();
    const missed = await b!.channels.missed(b!.name, offsets[0]!, ['room']);
    expect(missed?.map(({ body }) => body.toString())).toEqual(['2', '5']);
    expect(missed?.map(({ offset }) => offset)).toEqual([offsets[1], offsets[4]]);
    expect(await b!.channels.missed(b!.name, offsets[4]!, [])).toEqual([]);
    for (const unknown of ['', '1', 'x.1', `${offsets[4]}0`, `${offsets[0]!.split('.')[0]}.-1`]) {
      expect(await b!.channels.missed(b!.name, unknown, [])).toBeUndefined();
    }
  });
});

describe('the journal', () => {
  const all = { tags: [], except: [] };
  /** Each takes 256 bytes and three blocks of 260. */
  const add = (journal: Journal, channel: string, now = 0, maxBytes = 10_360) =>
    journal.add(channel, { ...all, forMs: 1_000, maxBytes }, Buffer.alloc(744), now);

  it('is bounded in bytes: one who was away for longer begins anew', () => {
    const journal = new Journal();
    for (let count = 0; count < 5_000; count += 1) add(journal, 'a');
    expect(journal.after('a', 4_989, [])).toBeUndefined();
    expect(journal.after('a', 4_990, [])?.map(({ number }) => number)).toEqual(
      Array.from({ length: 10 }, (_, index) => 4_991 + index),
    );
  });

  it('has what was said as it was, of all sizes, after much of it has made room', () => {
    const journal = new Journal();
    const bodies = Array.from({ length: 2_000 }, (_, n) =>
      Buffer.alloc((n * 37) % 3_000, `${n} \xff`),
    );
    const keep = { forMs: 1_000, maxBytes: 2 ** 20 };
    for (const body of bodies) journal.add('a', { ...all, ...keep }, body, 0);
    journal.add('a', { ...all, ...keep }, Buffer.alloc(0), 0);
    const kept = journal.after('a', 1_900, []);
    expect(kept?.map(({ body }) => body.toString('latin1'))).toEqual(
      [...bodies.slice(1_900), Buffer.alloc(0)].map((body) => body.toString('latin1')),
    );
  });

  it('has an empty message, also as its first one', () => {
    const journal = new Journal();
    journal.add('a', { ...all, forMs: 1_000, maxBytes: 1_000 }, Buffer.alloc(0), 0);
    expect(journal.after('a', 0, [])).toEqual([{ number: 1, body: Buffer.alloc(0) }]);
  });

  it('keeps bodies beside the heap of V8, and gives their memory back', async () => {
    const outside = () => process.memoryUsage().arrayBuffers;
    setFlagsFromString('--expose-gc');
    for (let n = 0; n < 3; n += 1) {
      (runInNewContext('gc') as () => void)(); // what other tests have left
      await delay(20);
    }
    const journal = new Journal();
    const before = outside();
    const body = Buffer.alloc(1_000);
    for (let n = 0; n < 60_000; n += 1)
      journal.add('a', { ...all, forMs: 10, maxBytes: 2 ** 24 }, body, 0);
    expect(outside() - before).toBeGreaterThan(10 * 2 ** 20);
    expect(outside() - before).toBeLessThan(18 * 2 ** 20);
    for (let now = 10; now < 20; now += 1) journal.sweep(now);
    expect(outside() - before).toBeLessThan(2 ** 20);
  });

  it('is bounded in time, and a channel that has lost nothing has missed nothing', () => {
    const journal = new Journal();
    const first = add(journal, 'quiet');
    for (let count = 0; count < 3; count += 1) add(journal, 'a');
    journal.sweep(999);
    expect(journal.after('quiet', first, [])).toEqual([]);
    expect(journal.after('a', first, [])).toHaveLength(3);
    journal.sweep(1_000);
    expect(journal.after('quiet', first, [])).toEqual([]);
    expect(journal.after('a', first, [])).toBeUndefined();
    expect(journal.after('a', 99, [])).toBeUndefined();
  });
});
