import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';

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
export interface ReceivedSpan extends Omit<WireSpan, 'attributes'> {
  readonly attributes: Attributes;
  readonly resource: Attributes;
}

const SERVER_KIND = 2;

/** A server that the OpenTelemetry SDKs export to, by OTLP over HTTP in JSON. */
export class OtlpReceiver {
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
