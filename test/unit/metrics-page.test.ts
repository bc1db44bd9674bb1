import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { MetricFamily } from '../../src/exposition/metric-family.js';
import { MetricsPage } from '../../src/exposition/metrics-page.js';
import { renderPage } from '../../src/exposition/render-page.js';
import { family, gauge, type SampleOf } from './metric-families.js';
import { parseOpenMetrics } from './open-metrics.js';

const LARGE = family(
  'counter',
  'c_total',
  Array.from({ length: 100 }, (_, i): SampleOf => [{ a: `é${i}` }, i]),
);

const respond = (headers: Record<string, string | undefined>, ...families: MetricFamily[]) =>
  new MetricsPage(families).respond({ headers });

const TEXT = 'text/plain; version=0.0.4; charset=utf-8';
const OPEN_METRICS = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

const PROMETHEUS_2 =
  'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1';
const PROMETHEUS_3 =
  'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2';

describe('the format of a page', () => {
  it.each([
    [undefined, TEXT],
    ['', TEXT],
    ['*/*', TEXT],
    ['text/*', TEXT],
    ['text/plain', TEXT],
    ['text/plain;version=0.0.4', TEXT],
    ['text/plain;version=0.0.4;q=0.5,*/*;q=0.1', TEXT],
    ['TEXT/PLAIN', TEXT],
    // Prometheus, versions 2 and 3; the latter also where it asks for text first, or by another escaping.
    [PROMETHEUS_2, OPEN_METRICS],
    [PROMETHEUS_3, OPEN_METRICS],
    [PROMETHEUS_3.replaceAll('allow-utf-8', 'underscores'), OPEN_METRICS],
    [PROMETHEUS_3.replaceAll('allow-utf-8', 'dots'), OPEN_METRICS],
    [PROMETHEUS_3.replaceAll('allow-utf-8', 'values'), OPEN_METRICS],
    [
      `application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,${PROMETHEUS_3}`,
      OPEN_METRICS,
    ],
    ['text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5', TEXT],
    // Others.
    ['application/openmetrics-text', OPEN_METRICS],
    ['application/openmetrics-text; version=1.0.0; charset=utf-8', OPEN_METRICS],
    ['application/openmetrics-text; version=1.0.0', OPEN_METRICS],
    ['Application/OpenMetrics-Text; Version=1.0.0', OPEN_METRICS],
    ['application/*', OPEN_METRICS],
    ['application/openmetrics-text, text/plain', OPEN_METRICS],
    ['text/plain, application/openmetrics-text', TEXT],
    ['application/openmetrics-text;q=0.1, */*;q=0.9', TEXT],
    ['application/openmetrics-text;q=0, text/plain;q=0', TEXT],
    ['application/openmetrics-text;q=0, */*', TEXT],
    // A version that there is not.
    ['application/openmetrics-text;version=0.0.1', TEXT],
    ['application/openmetrics-text;version=2.0.0', TEXT],
    // Browsers and curl.
    ['text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8', TEXT],
    ['text/html', TEXT],
    ['application/json', TEXT],
    // Nonsense.
    ['nonsense', TEXT],
    [';;;,,,', TEXT],
    ['/', TEXT],
    ['text/plain;q=nonsense', TEXT],
    ['application/openmetrics-text;q=nonsense', TEXT],
    ['"', TEXT],
    ['__proto__/constructor', TEXT],
    ['*/*;q=-1', TEXT],
  ])('for %s is %s', async (accept, contentType) => {
    const page = await respond(accept === undefined ? {} : { accept }, gauge(1));
    expect(page).toEqual({
      status: 200,
      contentType,
      body: renderPage([gauge(1)], contentType === TEXT ? 'text' : 'openmetrics'),
      headers: { Vary: 'Accept, Accept-Encoding' },
    });
    if (contentType === OPEN_METRICS) parseOpenMetrics(page.body as string);
  });
});

describe('a very long Accept header', () => {
  it('is read to its end', async () => {
    const accept = `${'a/b,'.repeat(4_000)}application/openmetrics-text`;
    expect(await respond({ accept }, gauge(1))).toMatchObject({ contentType: OPEN_METRICS });
  });
});

describe('the encoding of a page', () => {
  it.each([
    ['gzip', true],
    ['GZIP', true],
    ['gzip, deflate, br, zstd', true],
    ['deflate, gzip;q=0.5', true],
    ['gzip;q=1.0', true],
    ['gzip;q=0.001', true],
    ['gzip;q=0.5, identity;q=0.1', true],
    ['*', true],
    ['*;q=0.5', true],
    ['gzip, identity;q=0', true],
    [undefined, false],
    ['', false],
    ['identity', false],
    ['deflate, br', false],
    ['gzip;q=0', false],
    ['gzip;q=0, *', false],
    ['gzip;q=0.1, identity;q=0.5', false],
    ['identity, gzip', false],
    ['identity;q=0', false],
    ['*;q=0', false],
    ['x-gzip', false],
    ['nonsense;;;,=', false],
    ['gzip;q=nonsense', false],
  ])('for %s is gzip: %s', async (encoding, gzipped) => {
    const page = await respond({ 'accept-encoding': encoding }, LARGE);
    const text = renderPage([LARGE], 'text');
    expect(page.headers).toEqual({
      Vary: 'Accept, Accept-Encoding',
      ...(gzipped && { 'Content-Encoding': 'gzip' }),
    });
    expect(gzipped ? gunzipSync(page.body).toString() : page.body).toBe(text);
    if (gzipped) expect(page.body.length).toBeLessThan(text.length / 2);
  });

  it('is none where the page is so small that nothing is gained', async () => {
    const sized = (length: number) => ({ ...gauge(1), help: 'x'.repeat(length) });
    const bare = renderPage([sized(0)], 'text').length;
    const gzip = { 'accept-encoding': 'gzip' };
    const small = await respond(gzip, sized(1_023 - bare));
    const large = await respond(gzip, sized(1_024 - bare));
    expect(small.body).toHaveLength(1_023);
    expect(small.headers).not.toHaveProperty('Content-Encoding');
    expect(large.headers).toMatchObject({ 'Content-Encoding': 'gzip' });
    expect(gunzipSync(large.body)).toHaveLength(1_024);
  });

  it('is independent of the format', async () => {
    const page = await respond({ accept: PROMETHEUS_2, 'accept-encoding': 'gzip' }, LARGE);
    expect(page).toMatchObject({
      contentType: OPEN_METRICS,
      headers: { 'Content-Encoding': 'gzip' },
    });
    expect(parseOpenMetrics(gunzipSync(page.body).toString())[0]!.samples).toHaveLength(100);
  });
});

describe('a page that many ask for', () => {
  it('is made once for each format and encoding', async () => {
    let reads = 0;
    const counted = {
      ...LARGE,
      get help() {
        reads += 1;
        return 'h';
      },
    };
    const page = new MetricsPage([counted]);
    const gzip = { headers: { 'accept-encoding': 'gzip' } };
    const both = await Promise.all([page.respond(gzip), page.respond(gzip)]);
    expect(both[0].body).toBe(both[1].body);
    expect([await page.respond(gzip), reads]).toEqual([both[0], 1]);
    await page.respond({ headers: {} });
    expect(reads).toBe(1);
    const open = { headers: { accept: OPEN_METRICS, 'accept-encoding': 'gzip' } };
    const first = await page.respond(open);
    const again = await page.respond(open);
    expect([reads, first.body]).toEqual([2, again.body]);
    expect(first.body).not.toBe(both[0].body);
  });
});
