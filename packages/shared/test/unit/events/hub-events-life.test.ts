import 'reflect-metadata';
import { Global, Inject, Injectable, Module, type OnModuleInit } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { EventEmitter2, EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { setCurrentLink } from '../support/current-link.js';
import { ClusterEvents } from '../../../src/events/index.js';
import { HubCore } from '../../../src/thread/hub-core.js';
import {
  connect,
  enterWorker,
  eventsOf,
  forgetHub,
  idle,
  startWorker,
} from '../support/hub-workers.js';

let core: HubCore;
beforeEach(() => void (core = new HubCore()));
afterEach(forgetHub);

interface AppOptions {
  readonly beforeListening?: (events: ClusterEvents) => unknown;
  readonly connection?: ReturnType<typeof connect>;
  /** ClusterEvents is of a global module that imports EventEmitterModule: its hooks run in another order. */
  readonly global?: boolean;
}

/** An app of a worker of that slot. Its provider answers 'who'. */
async function startApp(
  slot: number,
  { beforeListening = () => {}, connection = connect(core, slot), global = false }: AppOptions = {},
) {
  enterWorker(connection.hub);
  const heard: unknown[] = [];
  @Injectable()
  class Answering implements OnModuleInit {
    constructor(@Inject(ClusterEvents) private readonly events: ClusterEvents) {}

    async onModuleInit() {
      await beforeListening(this.events);
    }

    @OnEvent('who')
    who(payload: unknown) {
      heard.push(payload);
      return slot;
    }
  }
  const emitters = EventEmitterModule.forRoot();
  @Global()
  @Module({ imports: [emitters], providers: [ClusterEvents], exports: [ClusterEvents] })
  class SharedModule {}
  @Module(
    global
      ? { imports: [SharedModule], providers: [Answering] }
      : { imports: [emitters], providers: [Answering, ClusterEvents] },
  )
  class AppModule {}
  const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
  onTestFinished(() => app.close());
  return { app, heard, events: app.get(ClusterEvents), connection };
}

describe('a worker that starts', () => {
  it('sends at once, and receives nothing before its methods listen', async () => {
    const { heard } = await startApp(0);
    let answers: unknown;
    let sent = 0;
    const beforeListening = async (own: ClusterEvents) => {
      answers = await Promise.all([1, 2, 3].map(() => own.request('who', 'early')));
      sent = await own.emit('who', 'all');
    };
    const starting = await startApp(1, { beforeListening });
    await idle();
    expect(answers).toEqual([0, 0, 0]);
    expect([sent, heard.at(-1)]).toEqual([1, 'all']);
    expect(await starting.events.request('who', 'late', { to: 1 })).toBe(1);
    expect(starting.heard).toEqual(['late']);
  });
});

describe.each([
  { where: 'in the module of its app', global: false },
  { where: 'in a global module', global: true },
])('ClusterEvents $where', ({ global }) => {
  it('hears the first that is sent to its worker, and the last', async () => {
    const { events } = await startWorker(core, 0);
    const receive = core.receive.bind(core);
    vi.spyOn(core, 'receive').mockImplementation((from, said, body) => {
      if (said.op === 'unsubscribe') void events.emit('who', 'last', 1);
      receive(from, said, body);
      if (said.op === 'subscribe') void events.emit('who', 'first', 1);
    });
    const { app, heard } = await startApp(1, { global });
    await idle();
    await app.close();
    expect(heard).toEqual(['first', 'last']);
    expect(await events.emit('who', 'too late', 1)).toBe(0);
  });
});

describe('a worker that ends', () => {
  it('answers the request that its method works on, and only then is closed', async () => {
    const { events } = await startWorker(core, 0);
    const { app, connection } = await startApp(1);
    let answer = (_value: string): void => {};
    const answers = new Promise((resolve) => (answer = resolve));
    app.get(EventEmitter2).on('slow', (): unknown => answers);
    const asked = events.request('slow', 0, { to: 1 });
    await idle();
    const closed = vi.fn();
    const closing = app.close().then(closed);
    await idle();
    expect(closed).not.toHaveBeenCalled();
    answer('done');
    await closing;
    connection.leave();
    expect(await asked).toBe('done');
  });

  it('is asked no more what others can answer from the beginning of its drain on', async () => {
    const tasks: ((before: number) => boolean)[] = [];
    const { events } = await startApp(0);
    setCurrentLink({ onDrainTasks: (has: () => boolean) => void tasks.push(has) });
    onTestFinished(() => setCurrentLink(undefined));
    const draining = await startApp(1);
    setCurrentLink(undefined);
    let answer = (_value: string): void => {};
    const answers = new Promise((resolve) => (answer = resolve));
    draining.app.get(EventEmitter2).on('slow', (): unknown => answers);
    const asked = events.request('slow', 0, { to: 1 });
    await idle();
    const hasTasks = (sinceMs = 0) => tasks.some((has) => has(performance.now() - sinceMs));
    expect(hasTasks()).toBe(true);
    // Workers that drain as well still ask it.
    expect([hasTasks(4_000), hasTasks(60_000)]).toEqual([true, false]);
    await idle();
    const ask = () => events.request('who', 0);
    expect(await Promise.all([ask(), ask(), ask()])).toEqual([0, 0, 0]);
    expect(await events.request('who', 0, { to: 1 })).toBe(1);
    expect(await events.emit('who')).toBe(2);
    answer('done');
    expect(await asked).toBe('done');
    await idle();
    expect(hasTasks()).toBe(false);
  });

  it('sends what it has to send', async () => {
    const { heard } = await startApp(0);
    const { app, events } = await startApp(1);
    await app.close();
    expect(await events.emit('who', 'last')).toBe(1);
    await idle();
    expect(heard).toEqual(['last']);
  });
});

describe('two apps of one process', () => {
  it('answer a request once: the one that listens, whichever was there first', async () => {
    const asker = await startWorker(core, 0);
    const silent = await startWorker(core, 1, new EventEmitter2());
    const { app } = await startApp(1, { connection: silent });
    enterWorker(silent.hub);
    const third = await eventsOf(new EventEmitter2());
    third.onApplicationBootstrap();
    await idle();
    for (let n = 0; n < 3; n += 1) {
      expect(await asker.events.request('who', n, { to: 1 })).toBe(1);
    }
    await expect(asker.events.request('other', 0, { to: 1 })).rejects.toThrow(
      /no listener for this event/,
    );
    await app.close();
    await expect(asker.events.request('who', 0, { to: 1 })).rejects.toThrow(
      /no listener for this event/,
    );
  });
});

describe('a slot', () => {
  it('is that of the newest worker while one takes over from another', async () => {
    const old = await startWorker(core, 0);
    const asker = await startWorker(core, 1);
    const recent = await startWorker(core, 0);
    const [ofOld, ofRecent] = [vi.fn(), vi.fn()];
    old.emitter.on('n', ofOld);
    recent.emitter.on('n', ofRecent);
    await asker.events.emit('turn', 0, 'one'); // the old one is the last in turn from now on
    expect(await asker.events.emit('n', 1, 0)).toBe(1);
    await idle();
    expect([ofOld.mock.calls, ofRecent.mock.calls]).toEqual([[], [[1]]]);
  });
});

it('an app without EventEmitterModule is told so', async () => {
  @Module({ providers: [ClusterEvents] })
  class App {}
  const starting = NestFactory.createApplicationContext(App, {
    logger: false,
    abortOnError: false,
  });
  await expect(starting).rejects.toMatchObject({
    code: 'CLUSTER_CONFIGURATION',
    message: expect.stringMatching(/add EventEmitterModule\.forRoot\(\)/),
  });
});
