import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { hostOf } from '../../../../src/tools/cli/arguments.js';
import { runningPorts } from '../../../../src/tools/cli/worker-ports.js';
import {
  ClusterConfigurationError,
  ClusterUnreachableError,
} from '../../../../src/contract/errors/index.js';

const URL = 'http://127.0.0.1:3000/health';

const fetching = vi.fn<typeof fetch>();
beforeEach(() => vi.stubGlobal('fetch', fetching));
afterEach(() => {
  vi.unstubAllGlobals();
  fetching.mockReset();
});

/** The endpoint answers with this text. */
const answer = (body: string, status = 200) =>
  fetching.mockImplementation(async () => new Response(body, { status }));

const health = (cluster: unknown) => JSON.stringify({ status: 'ok', details: { cluster } });

const CLUSTER = { balancing: 'ports', desired: 3, ports: [3_000, 3_001, 3_002] };

describe('the host of a URL', () => {
  it.each([
    [URL, '127.0.0.1'],
    ['http://[::1]:3000/health', '::1'],
    ['https://App.internal/health', 'app.internal'],
  ])('of %s is %s', (url, host) => {
    expect(hostOf(url)).toBe(host);
  });
});

describe('ports of a cluster that runs', () => {
  it('are what its health says', async () => {
    answer(health(CLUSTER));
    expect(await runningPorts(URL)).toEqual([3_000, 3_001, 3_002]);
    expect(fetching).toHaveBeenCalledExactlyOnceWith(URL, expect.anything());
  });

  it('are those of a cluster that is not well, too', async () => {
    answer(health(CLUSTER), 503);
    expect(await runningPorts(URL)).toHaveLength(3);
  });

  it('are none of slots that were scaled away', async () => {
    answer(health({ ...CLUSTER, desired: 2 }));
    expect(await runningPorts(URL)).toEqual([3_000, 3_001]);
  });

  it.each(['shared', 'reuse-port', 'round-robin'])('are none with %s', async (balancing) => {
    answer(health({ ...CLUSTER, balancing, ports: undefined }));
    const asked = runningPorts(URL);
    await expect(asked).rejects.toThrow(ClusterConfigurationError);
    await expect(asked).rejects.toThrow(`runs with balancing '${balancing}'`);
    await expect(asked).rejects.toThrow('CLUSTER_BALANCING=ports');
  });
});

describe('where nothing answers', () => {
  it.each([
    ['without a cause', new Error('The operation was aborted due to timeout')],
    [
      'with a cause that says nothing',
      new Error('The operation was aborted due to timeout', { cause: new Error('') }),
    ],
    [
      'with a cause that is no error',
      new Error('The operation was aborted due to timeout', { cause: 'x' }),
    ],
  ])('that of fetch is told where it is one %s', async (_, error) => {
    fetching.mockRejectedValue(error);
    await expect(runningPorts(URL)).rejects.toThrow(
      `${URL}: The operation was aborted due to timeout. Start`,
    );
  });

  it('it is waited for 5 s', async () => {
    const timeout = vi.spyOn(AbortSignal, 'timeout');
    answer(health(CLUSTER));
    await runningPorts(URL);
    expect(timeout).toHaveBeenCalledExactlyOnceWith(5_000);
    expect(fetching.mock.calls[0]![1]).toEqual({ signal: timeout.mock.results[0]!.value });
    timeout.mockRestore();
  });
});

const INJECTION = '3000; rm -rf /';

/** Answers of a server that is not a cluster, or is malicious. */
const HOSTILE: readonly (readonly [string, string])[] = [
  ['no JSON', '<html>\u001b[31mHello</html>'],
  ['nothing', ''],
  ['a prototype', '{"__proto__":{"details":{"cluster":{}}}}'],
  ['an answer without details', '{"status":"ok"}'],
  ['details without a cluster', '{"details":{}}'],
  ['a cluster that shows no details', '{"details":{"cluster":{"status":"up"}}}'],
  ['a strategy that there is not', health({ ...CLUSTER, balancing: '\u001b[31mports' })],
  ['a text for a port', health({ ...CLUSTER, ports: [INJECTION, 3_001, 3_002] })],
  ['a list for a port', health({ ...CLUSTER, ports: [[INJECTION], 3_001, 3_002] })],
  ['port 0', health({ ...CLUSTER, ports: [0, 3_001, 3_002] })],
  ['port 65536', health({ ...CLUSTER, ports: [65_536, 3_001, 3_002] })],
  ['half a port', health({ ...CLUSTER, ports: [3_000.5, 3_001, 3_002] })],
  ['a port too large to be told', health(CLUSTER).replace('3001', '1e999')],
  ['no port', health({ ...CLUSTER, ports: [null, 3_001, 3_002] })],
  ['a text for the ports', health({ ...CLUSTER, ports: INJECTION })],
  ['no ports', health({ ...CLUSTER, ports: undefined })],
  ['fewer ports than workers', health({ ...CLUSTER, ports: [3_000, 3_001] })],
  ['a text for the number of workers', health({ ...CLUSTER, desired: '3' })],
  ['no worker', health({ ...CLUSTER, desired: 0 })],
  ['half a worker', health({ ...CLUSTER, desired: 1.5 })],
  [
    'more workers than there can be',
    health({ ...CLUSTER, desired: 257, ports: Array(257).fill(1) }),
  ],
];

describe('an answer of something else', () => {
  it.each(HOSTILE)('is refused, and nothing of it repeated: %s', async (_, body) => {
    answer(body);
    const error: unknown = await runningPorts(URL).catch((each: unknown) => each);
    expect(error).toBeInstanceOf(ClusterUnreachableError);
    const { message } = error as Error;
    expect(message).toContain(
      `cannot ask the cluster at ${URL}: its answer does not show a cluster`,
    );
    expect(message).toContain('health.details');
    expect(message).not.toMatch(/rm -rf|\p{Cc}/u);
  });

  it('that breaks off is refused too', async () => {
    const body = new ReadableStream({ start: (stream) => stream.error(new Error('reset')) });
    fetching.mockResolvedValue(new Response(body));
    await expect(runningPorts(URL)).rejects.toThrow(ClusterUnreachableError);
  });
});
