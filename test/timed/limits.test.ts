import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { type Answer, request } from '../support/http-client.js';

afterEach(stopAll);

interface Timed extends Answer {
  /** When the answer came, in monotonic ms. */
  readonly at: number;
  readonly ms: number;
}

/** A cluster of one worker with the routes of the fixture, and a client with open connections. */
async function start(limit: object | false) {
  const cluster = await ClusterProcess.start({
    options: { workers: 1, limit },
    env: behaviour('limited'),
  });
  const agent = new http.Agent({ keepAlive: true });
  onTestFinished(() => agent.destroy());
  const ask = async (path: string): Promise<Timed> => {
    const began = performance.now();
    const answer = await request(cluster.url, path, { agent });
    const at = performance.now();
    return { ...answer, at, ms: at - began };
  };
  /** Asks at a fixed rate, however many answers are missing. */
  const askAtRate = async (path: string, perSecond: number, seconds: number) => {
    const asked: Promise<Timed>[] = [];
    const began = performance.now();
    for (let passedMs = 0; passedMs < seconds * 1_000; passedMs = performance.now() - began) {
      while (asked.length < (passedMs / 1_000) * perSecond) asked.push(ask(path));
      await delay(1);
    }
    return Promise.all(asked);
  };
  /** Has so many requests open at all times. */
  const askInTurn = async (path: string, atOnce: number, seconds: number) => {
    const answers: Timed[] = [];
    const until = performance.now() + seconds * 1_000;
    const loop = async () => {
      while (performance.now() < until) answers.push(await ask(path));
    };
    await Promise.all(Array.from({ length: atOnce }, loop));
    return answers;
  };
  return { ask, askAtRate, askInTurn };
}

const p99Of = (answers: readonly Timed[]): number => {
  const times = answers.map(({ ms }) => ms).sort((a, b) => a - b);
  return times[Math.floor(times.length * 0.99)]!;
};
const withStatus = (answers: readonly Timed[], code: number) =>
  answers.filter(({ status }) => status === code);

const OVERLOAD = 3;
const SECONDS = 7;

/** The number of answers in each second, divided by the number of others in that second. Descending. */
function sharesBySecond(answers: readonly Timed[], others: readonly Timed[]): number[] {
  const from = Math.min(...answers.map(({ at }) => at));
  return Array.from({ length: SECONDS }, (_, second) => {
    const [these, those] = [answers, others].map(
      (each) => each.filter(({ at }) => Math.floor((at - from) / 1_000) === second).length,
    );
    return these! / those!;
  }).sort((a, b) => b - a);
}

describe('a worker at three times its capacity', () => {
  it('answers 0.8 of the capacity in time, and all of a critical route', async () => {
    const unlimited = await start(false);
    for (let i = 0; i < 50; i += 1) await unlimited.ask('/busy'); // V8 has compiled it
    const idle = await unlimited.askInTurn('/busy', 1, 2);
    const capacity = (await unlimited.askInTurn('/busy', 4, 4)).length / 4;
    const late = await unlimited.askAtRate('/busy', OVERLOAD * capacity, 3);

    const { ask, askAtRate } = await start({});
    for (let i = 0; i < 50; i += 1) await ask('/busy');
    await askAtRate('/busy', OVERLOAD * capacity, 3); // the limit is learned
    // Both at once, because a noisy machine is as slow for one as for the other.
    const [possible, answers, vital] = await Promise.all([
      unlimited.askInTurn('/busy', 4, SECONDS),
      askAtRate('/busy', OVERLOAD * capacity, SECONDS),
      askAtRate('/vital/7', 20, SECONDS),
    ]);
    const answered = withStatus(answers, 200);
    const shed = withStatus(answers, 503);
    // Not the mean: on a busy machine the client stands still now and then, and asks for nothing.
    const share = sharesBySecond(answered, possible)[2]!;
    const figures = `${share.toFixed(2)} of the capacity; p99 ${p99Of(idle).toFixed(0)} ms idle, ${p99Of(answered).toFixed(0)} ms with the limit, ${p99Of(late).toFixed(0)} ms without`;

    expect(share, figures).toBeGreaterThan(0.8);
    expect(answered.length + shed.length).toBe(answers.length);
    expect(new Set(shed.map(({ headers }) => headers['retry-after']))).toEqual(new Set(['1']));
    expect(new Set(vital.map(({ status }) => status))).toEqual(new Set([200]));
    expect(p99Of(late), figures).toBeGreaterThan(5 * p99Of(answered));
  });
});
