import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { OnceAMinute } from '../../../../src/contract/errors/index.js';
import type { Engine } from '../../../../src/hub/socket.io/engine.interface.js';
import { limitConnects } from '../../../../src/hub/socket.io/connect-limit.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

it('a client that asks for more than 100 namespaces within a second is disconnected, of which one line tells', () => {
  const engine = new EventEmitter();
  const warn = vi.fn();
  const warnings = new OnceAMinute(warn);
  limitConnects(engine as Pick<Engine, 'on'>, (text) => warnings.say(text, text));
  const connect = () => {
    const client = Object.assign(new EventEmitter(), { close: vi.fn() });
    engine.emit('connection', client);
    return client;
  };
  const ask = (client: EventEmitter, times: number, data = '0/ns,') => {
    for (let n = 0; n < times; n += 1) client.emit('packet', { type: 'message', data });
  };

  const patient = connect();
  for (let n = 0; n < 3; n += 1) {
    ask(patient, 100);
    ask(patient, 1_000, '2["event"]');
    vi.advanceTimersByTime(1_001);
  }
  expect(patient.close).not.toHaveBeenCalled();

  for (const client of [connect(), connect()]) {
    ask(client, 101);
    expect(client.close.mock.calls).toEqual([[true]]);
  }
  expect(warn).toHaveBeenCalledOnce();
});
