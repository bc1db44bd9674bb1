import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { MetricsPage } from '../../../../src/observe/exposition/metrics-page.js';

const TYPE = 'text/plain; version=0.0.4; charset=utf-8';
const LARGE = 'é 1\n'.repeat(1_000);

const respond = (headers: Record<string, string | undefined>, text = LARGE) =>
  new MetricsPage(TYPE, text).respond({ headers });

/** The `Accept` header of Prometheus 3. */
const PROMETHEUS =
  'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.2';

describe('a page of metrics', () => {
  it.each([undefined, 'application/openmetrics-text', PROMETHEUS])(
    'has the type of its text for %s',
    async (accept) => {
      expect(await respond({ accept })).toEqual({
        status: 200,
        contentType: TYPE,
        body: LARGE,
        headers: { Vary: 'Accept-Encoding' },
      });
    },
  );

  it.each([
    ['gzip', true],
    ['GZIP', true],
    ['gzip, deflate, br, zstd', true],
    ['gzip;q=0.5, identity;q=0.1', true],
    ['*', true],
    ['identity', false],
    ['gzip;q=0', false],
    ['gzip;q=0.1, identity;q=0.5', false],
    ['nonsense;;;,=', false],
  ])('for %s is gzip: %s', async (encoding, gzipped) => {
    const { body, headers } = await respond({ 'accept-encoding': encoding });
    expect(headers).toEqual({
      Vary: 'Accept-Encoding',
      ...(gzipped && { 'Content-Encoding': 'gzip' }),
    });
    expect(gzipped ? gunzipSync(body).toString() : body).toBe(LARGE);
  });

  it('is not compressed below 1 KiB', async () => {
    const gzip = { 'accept-encoding': 'gzip' };
    expect((await respond(gzip, 'x'.repeat(1_023))).body).toHaveLength(1_023);
    expect((await respond(gzip, 'x'.repeat(1_024))).body.length).toBeLessThan(1_000);
  });

  it('is compressed once for all who ask', async () => {
    const page = new MetricsPage(TYPE, LARGE);
    const gzip = { headers: { 'accept-encoding': 'gzip' } };
    const [first, second] = await Promise.all([page.respond(gzip), page.respond(gzip)]);
    expect(first!.body).toBe(second!.body);
  });
});
