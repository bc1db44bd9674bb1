import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, type StartOptions, stopAll } from '../support/cluster-process.js';
import { request } from '../support/http-client.js';
import { offloadOptions } from '../support/offload.js';

/** `{ key, value: { stringValue | intValue | … } }`, as OTLP has it in JSON. */
type Attribute = Readonly<{ key: string; value: Readonly<Record<string, unknown>> }>;
type Attributes = Readonly<Record<string, unknown>>;

interface Scoped<T> {
  readonly resource: { readonly attributes: readonly Attribute[] };
  readonly scopeSpans?: readonly { readonly spans: readonly T[] }[];
}

interface WireSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly kind: number;
  readonly attributes: readonly Attribute[];
}

/** A span that has arrived, with who sent it. */
interface ReceivedSpan extends Omit<WireSpan, 'attributes'> {
  readonly attributes: Attributes;
  readonly resource: Attributes;
}

const SERVER_KIND = 2;

/** A server that the OpenTelemetry SDKs export to, by OTLP over HTTP in JSON. */
class OtlpReceiver {
  readonly spans: ReceivedSpan[] = [];
  /** Bodies of the other signals. */
  readonly metrics: string[] = [];
  readonly logs: string[] = [];
  readonly #server: http.Server;

  /** @param answers whether the receiver answers. If it does not, the exporter waits. */
  private constructor(answers: boolean) {
    this.#server = http.createServer((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
      request.on('end', () => {
        if (!answers) return;
        this.#take(request.url!, body);
        response.setHeader('content-type', 'application/json').end('{}');
      });
    });
  }

  static async open({ answers = true } = {}): Promise<OtlpReceiver> {
    const receiver = new OtlpReceiver(answers);
    await once(receiver.#server.listen(0, '127.0.0.1'), 'listening');
    return receiver;
  }

  /** Has an SDK export to it. */
  get env(): Readonly<Record<string, string>> {
    const { port } = this.#server.address() as AddressInfo;
    return {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_SERVICE_NAME: 'shop',
      // Nothing is exported before the end, unless by an end.
      OTEL_BSP_SCHEDULE_DELAY: '600000',
    };
  }

  /** Spans of requests. */
  get requests(): readonly ReceivedSpan[] {
    return this.spans.filter(({ kind }) => kind === SERVER_KIND);
  }

  /** In the order in which they began. */
  childrenOf(span: ReceivedSpan): readonly ReceivedSpan[] {
    return this.spans.filter(
      ({ traceId, parentSpanId }) => traceId === span.traceId && parentSpanId === span.spanId,
    );
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #take(url: string, body: string): void {
    if (url === '/v1/metrics') this.metrics.push(body);
    if (url === '/v1/logs') this.logs.push(body);
    if (url !== '/v1/traces') return;
    const { resourceSpans } = JSON.parse(body) as { resourceSpans: readonly Scoped<WireSpan>[] };
    for (const { resource, scopeSpans = [] } of resourceSpans) {
      for (const span of scopeSpans.flatMap(({ spans }) => spans)) {
        const attributes = toObject(span.attributes);
        this.spans.push({ ...span, attributes, resource: toObject(resource.attributes) });
      }
    }
  }
}

function toObject(attributes: readonly Attribute[]): Attributes {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}

const preload = (name: string): string =>
  pathToFileURL(join(import.meta.dirname, `../fixtures/preload/${name}.mjs`)).href;

/** The arguments that a user adds to the command line or to NODE_OPTIONS. */
const TRACING = ['--import', preload('tracing'), '--import', preload('announce-sdk')];

const PATH = '/traced/7';

/** An app that is traced. */
function start(
  receiver: OtlpReceiver,
  { env, ...rest }: Pick<StartOptions, 'options' | 'env' | 'execArgv'> = {},
): Promise<ClusterProcess> {
  return ClusterProcess.start({
    execArgv: TRACING,
    ...rest,
    env: {
      ...receiver.env,
      ...behaviour('traced'),
      ...offloadOptions({ threads: 1 }),
      OTEL_METRICS_EXPORTER: 'none',
      ...env,
    },
  });
}

describe('a cluster whose SDK is preloaded', () => {
  const REQUESTS = 12;
  let receiver: OtlpReceiver;
  let cluster: ClusterProcess;
  const pids = new Set<number>();

  beforeAll(async () => {
    receiver = await OtlpReceiver.open();
    cluster = await start(receiver, {
      options: { admin: { port: 0 } },
      env: { OTEL_NODE_RESOURCE_DETECTORS: 'all' },
    });
    const ask = async (): Promise<void> => {
      const answers = await Promise.all(
        Array.from({ length: REQUESTS }, () => request(cluster.url, PATH)),
      );
      expect(answers.map(({ status }) => status)).toEqual(Array(REQUESTS).fill(200));
    };
    await ask();
    for (const pid of cluster.workerPids) pids.add(pid);
    cluster.kill('SIGHUP');
    await cluster.event('reload-ended');
    for (const pid of cluster.workerPids) pids.add(pid);
    await ask();
    cluster.kill('SIGTERM');
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
  });
  afterAll(async () => {
    await stopAll();
    receiver.close();
  });

  it('has sent the spans of all requests, though a reload and its end came at once', () => {
    expect(
      receiver.requests.filter(({ attributes }) => attributes['url.path'] === PATH),
    ).toHaveLength(2 * REQUESTS);
    expect(receiver.spans).toHaveLength(2 * REQUESTS);
    expect(cluster.all('warning')).toEqual([]);
  });

  it('names each worker, and sends nothing from the primary', () => {
    const senders = receiver.spans.map(({ resource }) => resource);
    const names = new Set(senders.map((resource) => resource['service.instance.id']));
    expect(pids.size).toBe(4);
    for (const { 'process.pid': pid } of senders) expect(pids).toContain(Number(pid));
    expect(names).toHaveLength(new Set(senders.map((resource) => resource['process.pid'])).size);
  });

  it('runs it in no thread: not in those that compute, nor in the watchdog, nor in the admin listener', () => {
    const seen = [...cluster.output.matchAll(/^preloaded pid=(\d+) thread=(\d+) sdk=(\w+)$/gm)];
    const lines = seen.map(([, pid, thread, sdk]) => ({
      isWorker: pids.has(Number(pid)),
      inThread: thread !== '0',
      sdk: sdk === 'true',
    }));
    expect(lines.filter(({ inThread }) => !inThread)).toEqual([
      { isWorker: false, inThread: false, sdk: true }, // ended there
      ...Array(4).fill({ isWorker: true, inThread: false, sdk: true }),
    ]);
    // A loader that is given by --import has to run in those: what they share is the app's code.
    const inThreads = lines.filter(({ inThread }) => inThread);
    expect(inThreads.length).toBeGreaterThan(0);
    expect(inThreads.filter(({ sdk, isWorker }) => sdk || !isWorker)).toEqual([]);
  });
});

describe('an app whose SDK runs in its threads, too', () => {
  let receiver: OtlpReceiver;
  let cluster: ClusterProcess;

  beforeEach(async () => {
    receiver = await OtlpReceiver.open();
    cluster = await start(receiver, {
      options: { workers: 1 },
      execArgv: [],
      env: {
        NODE_OPTIONS: TRACING.join(' '),
        OTEL_SDK_DISABLED: 'false',
        OTEL_METRICS_EXPORTER: 'otlp',
      },
    });
    expect((await request(cluster.url, PATH)).status).toBe(200);
    cluster.kill('SIGTERM');
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
  });
  afterEach(async () => {
    await stopAll();
    receiver.close();
  });

  it('has one trace from the request to what the method does in its thread', () => {
    const [served] = receiver.requests;
    expect(receiver.childrenOf(served!).map(({ name }) => name)).toEqual(['inner']);
    expect(receiver.spans).toHaveLength(2);
    expect(cluster.output).toMatch(/preloaded pid=\d+ thread=[1-9]\d* sdk=true/);
  });

  it('sends its metrics, and what its shutdown hooks log, before it ends', () => {
    expect(receiver.metrics.join()).toContain('http.server.request.duration');
    expect(receiver.logs.join()).toContain('the app is closed');
  });
});
