import { afterEach, describe, expect, it, vi } from 'vitest';
import { HubChannels } from '../../../src/client/hub-channels.js';
import { HubCore } from '../../../src/thread/hub-core.js';
import { MAX_BODY_BYTES } from '../../../src/wire/limits.js';
import { connect, idle } from '../support/hub-workers.js';

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
      said: (body) => void heard.push(body.toString()),
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

describe('a channel', () => {
  it('is heard by its other members, the echo of each in one order for all', async () => {
    const [a, b, c] = await start(3);
    const echo = (worker: typeof a, text: string) => () => worker!.heard.push(`${text} echo`);
    a!.say('1', { echo: echo(a, '1') });
    b!.say('2', { echo: echo(b, '2') });
    a!.say('3', { to: 'worker 2' });
    await idle();
    expect(a!.heard).toEqual(['1 echo', '2']);
    expect(b!.heard).toEqual(['1', '2 echo']);
    expect(c!.heard).toEqual(['1', '2', '3']);
  });

  it('keeps a message to itself that is too large, says so, and goes on', async () => {
    const [a, b] = await start(2);
    const echo = vi.fn();
    a!.channels.say(a!.name, Buffer.alloc(MAX_BODY_BYTES + 1), { echo });
    a!.say('small');
    await idle();
    expect(echo).toHaveBeenCalledOnce();
    expect(a!.warnings).toEqual([
      expect.stringMatching(
        /^a message does not reach other workers: it has 16777217 bytes; the hub takes 16777216/,
      ),
    ]);
    expect(b!.heard).toEqual(['small']);
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
    const echo = vi.fn();
    a!.say('1', { echo });
    await idle();
    expect([b!.heard, c!.heard]).toEqual([[], ['1']]);
    expect(echo).toHaveBeenCalledOnce();
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
    expect(b!.heard).toEqual(['1', '2', '3']);
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
          echo: () => void echoes.push(text),
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
      expect(echoes).toEqual(['1', '2', '3']);
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
      expect(echoes).toEqual(['1']);
      await vi.advanceTimersByTimeAsync(1_980);
      expect(echoes).toEqual(['1']);
      await vi.advanceTimersByTimeAsync(20);
      expect(echoes).toEqual(['1', '2']);
      expect([a.hub.outcomes.get('events dropped'), vi.getTimerCount()]).toEqual([2, 0]);
      expect(heard()).toEqual([]);
    });

    it('for 16 MiB, the oldest of which are lost', async () => {
      const { say, echoes } = await refused();
      for (const text of ['1', '2', '3', '4', '5']) say(text, 4 * 1024 * 1024);
      expect(echoes).toEqual(['1']);
      say('6', 8 * 1024 * 1024);
      expect(echoes).toEqual(['1', '2', '3']);
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
      expect(echoes).toEqual(['1', '2']);
      expect(vi.getTimerCount()).toBe(0);
    });
  });

  it('has its echoes where the hub is lost, and is joined again', async () => {
    const [a] = await start(1);
    const echo = vi.fn();
    a!.say('1', { echo });
    a!.line.closed();
    expect(echo).toHaveBeenCalledOnce();
    a!.line.opened('b');
    await idle();
    expect(a!.heard).toEqual(['joined']);
  });
});
