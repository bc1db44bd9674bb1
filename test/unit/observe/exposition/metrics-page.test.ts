import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { MetricFamily } from '../../../../src/observe/exposition/metric-family.js';
import { MetricsPage } from '../../../../src/observe/exposition/metrics-page.js';
import { renderPage } from '../../../../src/observe/exposition/render-page.js';
import { family, gauge, type SampleOf } from '../../support/metric-families.js';

const LARGE = family(
  'counter',
  'c_total',
  Array.from({ length: 100 }, (_, i): SampleOf => [{ a: `é${i}` }, i]),
);

const respond = (headers: Record<string, string | undefined>, ...families: MetricFamily[]) =>
  new MetricsPage(families).respond({ headers });

/** The `Accept` header of Prometheus 3. */
const PROMETHEUS =
  'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2';

describe('the format of a page', () => {
  it.each([undefined, '*/*', 'text/html', 'application/openmetrics-text', PROMETHEUS, '"', ';;,,'])(
    'is text for %s',
    async (accept) => {
      expect(await respond({ accept }, gauge(1))).toEqual({
        status: 200,
        contentType: 'text/plain; version=0.0.4; charset=utf-8',
        body: renderPage([gauge(1)]),
        headers: { Vary: 'Accept-Encoding' },
      });
    },
  );
});

describe('the encoding of a page', () => {
  it.each([
    ['gzip', true],
    ['GZIP', true],
    ['gzip, deflate, br, zstd', true],
    ['gzip;q=0.5, identity;q=0.1', true],
    ['*', true],
    [undefined, false],
    ['identity', false],
    ['gzip;q=0', false],
    ['gzip;q=0.1, identity;q=0.5', false],
    ['identity;q=0', false],
    ['nonsense;;;,=', false],
  ])('for %s is gzip: %s', async (encoding, gzipped) => {
    const page = await respond({ 'accept-encoding': encoding }, LARGE);
    const text = renderPage([LARGE]);
    expect(page.headers).toEqual({
      Vary: 'Accept-Encoding',
      ...(gzipped && { 'Content-Encoding': 'gzip' }),
    });
    expect(gzipped ? gunzipSync(page.body).toString() : page.body).toBe(text);
    if (gzipped) expect(page.body.length).toBeLessThan(text.length / 2);
  });

  it('is none where the page is so small that nothing is gained', async () => {
    const sized = (length: number) => ({ ...gauge(1), help: 'x'.repeat(length) });
    const bare = renderPage([sized(0)]).length;
    const gzip = { 'accept-encoding': 'gzip' };
    const small = await respond(gzip, sized(1_023 - bare));
    const large = await respond(gzip, sized(1_024 - bare));
    expect(small.body).toHaveLength(1_023);
    expect(small.headers).not.toHaveProperty('Content-Encoding');
    expect(large.headers).toMatchObject({ 'Content-Encoding': 'gzip' });
    expect(gunzipSync(large.body)).toHaveLength(1_024);
  });
});

describe('a page that many ask for', () => {
  it('is made once for each encoding', async () => {
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
  });
});
