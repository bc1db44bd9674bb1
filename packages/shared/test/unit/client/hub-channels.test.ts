import { describe, expect, it, vi } from 'vitest';
import { HubChannels } from '../../../src/client/hub-channels.js';
import { HubCore } from '../../../src/thread/hub-core.js';
import { connect, idle } from '../support/hub-workers.js';

/** Workers on one hub, each with a member of a channel. */
async function start(count: number) {
  const core = new HubCore();
  const workers = Array.from({ length: count }, (_, slot) => {
    const worker = connect(core, slot);
    const { hub } = worker;
    const channels = new HubChannels(hub);
    const heard: string[] = [];
    const name = `worker ${slot}`;
    channels.join('chat', name, {
      said: (body) => void heard.push(body.toString()),
      left: (other) => heard.push(`${other} left`),
      joined: () => heard.push('joined'),
    });
    const say = (text: string, saying = {}) => channels.say(name, Buffer.from(text), saying);
    return { ...worker, channels, heard, name, say };
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
    expect(a!.hub.outcomes.get('say missed')).toBe(1);
  });

  it('waits for the next connection, in order, once it is a member there', async () => {
    const [a, b] = await start(2);
    a!.line.closed();
    const echoes: string[] = [];
    for (const text of ['1', '2']) a!.say(text, { echo: () => echoes.push(text) });
    a!.line.opened('a');
    await idle();
    expect([a!.heard, b!.heard, echoes]).toEqual([['joined'], ['1', '2'], ['1', '2']]);
  });

  it('keeps a message to itself that cannot be sent, and counts that', async () => {
    const [a, b] = await start(2);
    const echo = vi.fn();
    a!.channels.say(a!.name, Buffer.alloc(2 ** 24 + 1), { echo });
    a!.say('small');
    await idle();
    expect(echo).toHaveBeenCalledOnce();
    expect([b!.heard, a!.hub.outcomes.get('say dropped')]).toEqual([['small'], 1]);
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
