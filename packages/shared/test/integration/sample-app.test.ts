import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ONE_ADAPTER } from '../../../../test/support/adapters.js';
import { ClusterProcess, stopAll } from '../../../../test/support/cluster-process.js';
import { eventually } from '../../../../test/support/eventually.js';
import { request, type RequestOptions } from '../../../../test/support/http-client.js';

const JSON_BODY = { 'content-type': 'application/json' };

describe('what the workers of the sample app share with SAMPLE_SHARED=1', () => {
  const slots = [0, 1] as const;
  let cluster: ClusterProcess;

  beforeAll(async () => {
    cluster = await ClusterProcess.start({
      program: 'installedSample',
      env: {
        SAMPLE_SHARED: '1',
        SAMPLE_OPTIONS: JSON.stringify({ workers: 2 }),
        PORT: '0',
        HOST: '127.0.0.1',
        ADAPTER: ONE_ADAPTER,
      },
    });
  });

  afterAll(stopAll);

  const at = async <T>(path: string, options?: RequestOptions) => {
    const { status, body } = await request(cluster.url, `/shared/${path}`, options);
    return { status, body: JSON.parse(body) as T };
  };
  /** The answer of each worker, in the order of `slots`. */
  async function each<T extends { slot: number }>(path: string): Promise<T[]> {
    const found = new Map<number, T>();
    await eventually(
      `${path} of both workers`,
      async () => {
        const { body } = await at<T>(path);
        found.set(body.slot, body);
      },
      () => found.size === slots.length,
    );
    return slots.map((slot) => found.get(slot)!);
  }

  it('is a limit of requests for all together', async () => {
    const answers = await Promise.all(Array.from({ length: 6 }, () => at('limited')));
    expect(answers.map(({ status }) => Number(status)).toSorted((a, b) => a - b)).toEqual([
      200, 200, 200, 200, 200, 429,
    ]);
  });

  it('is a cache', async () => {
    const value = { price: 12 };
    await at('cache/book', { method: 'PUT', headers: JSON_BODY, body: JSON.stringify(value) });
    expect(await each('cache/book')).toEqual(slots.map((slot) => ({ slot, value })));
    expect((await at('cache/none')).body).toMatchObject({ value: null });

    const computed = await Promise.all(
      Array.from({ length: 8 }, async () => (await at<{ value: number }>('computed/x')).body.value),
    );
    expect(computed).toEqual(computed.map(() => computed[0]));
  });

  it('is what they tell and ask each other', async () => {
    const note = { text: 'hello' };
    const told = await at('notes', {
      method: 'POST',
      headers: JSON_BODY,
      body: JSON.stringify(note),
    });
    expect(told.body).toEqual({ workers: slots.length });
    for (const slot of slots) {
      const { body } = await eventually(
        'the note',
        () => at<{ notes: unknown[] }>(`notes/${slot}`),
        (heard) => heard.body.notes.length > 0,
      );
      expect(body).toEqual({ slot, notes: [note] });
    }
    expect((await at('notes/7')).status).toBe(404);
  });

  it('is Socket.IO, to which each request of a client may come by any of them', async () => {
    const path = '/socket.io/?EIO=4&transport=polling';
    const { sid } = JSON.parse((await request(cluster.url, path)).body.slice(1)) as { sid: string };
    const io = (body?: string) =>
      request(
        cluster.url,
        `${path}&sid=${sid}`,
        body === undefined ? {} : { method: 'POST', body },
      );
    expect((await io('40')).body).toBe('ok');
    expect((await io()).body).toMatch(/^40/);
    expect(await each('chat')).toEqual(slots.map((slot) => ({ slot, clients: 1 })));

    const said = new Set<number>();
    while (said.size < slots.length) {
      const { slot } = (await at<{ slot: number }>('chat/hello', { method: 'POST' })).body;
      said.add(slot);
      expect((await io()).body).toBe(`42["said",${JSON.stringify({ text: 'hello', slot })}]`);
    }
  });
});
