import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import {
  dashboardFile,
  dashboardQueries,
  OBSERVABILITY,
  observabilityFile,
} from '../support/observability-files.js';
import { SteadyLoad } from '../support/steady-load.js';
import { describeWith } from '../support/system-packages.js';
import { freePorts } from '../support/free-ports.js';
import { request } from '../support/http-client.js';
import { ServerProcess } from '../support/server-process.js';

const RULES = ['recording.rules.yml', 'alerts.rules.yml'];

/** A series and its values as they were scraped, or as a rule has made them. */
interface Series {
  readonly metric: Readonly<Record<string, string>>;
  /** Unix time in seconds, value. */
  readonly values: readonly (readonly [number, number])[];
}

interface RuleState {
  readonly name: string;
  readonly health: string;
  readonly lastError?: string;
  /** `inactive`, `pending` or `firing`. Only alerts have a state. */
  readonly state?: string;
}

/** Seconds between two scrapes, and for one: a busy machine may take more than one for it. */
const SCRAPE_SECONDS = 2;

/** A Prometheus with the sample app's configuration and rules, each 2 s instead of each 15. */
class PrometheusProcess {
  private constructor(
    private readonly server: ServerProcess,
    private readonly directory: string,
    private readonly url: string,
  ) {}

  /** @param target host:port that it scrapes. */
  static async start(target: string): Promise<PrometheusProcess> {
    const directory = mkdtempSync(join(tmpdir(), 'nestjs-cluster-prometheus-'));
    const address = `127.0.0.1:${await freePorts(1)}`;
    const url = `http://${address}`;
    try {
      for (const rules of RULES) cpSync(join(OBSERVABILITY, rules), join(directory, rules));
      const configuration = observabilityFile('prometheus.yml')
        .replaceAll(
          /(scrape_interval|evaluation_interval|scrape_timeout): \d+s/g,
          `$1: ${SCRAPE_SECONDS}s`,
        )
        .replace('127.0.0.1:9464', target);
      writeFileSync(join(directory, 'prometheus.yml'), configuration);
      const args = [
        `--config.file=${join(directory, 'prometheus.yml')}`,
        `--storage.tsdb.path=${join(directory, 'data')}`,
        `--web.listen-address=${address}`,
      ];
      const isReady = async () => (await request(url, '/-/ready')).outcome === 'ok';
      const server = await ServerProcess.start('prometheus', args, isReady);
      return new PrometheusProcess(server, directory, url);
    } catch (error) {
      rmSync(directory, { recursive: true, force: true });
      throw error;
    }
  }

  /** Everything it wrote, to show when a test fails. */
  get output(): string {
    return this.server.output;
  }

  /** The stored samples that an expression with a range selects, such as `up[1m]`. */
  async samples(rangeSelector: string): Promise<Series[]> {
    const { result } = await this.#get<{ result: RawSeries[] }>('query', { query: rangeSelector });
    return result.map(toSeries);
  }

  /** An expression at each second of a span of unix time. */
  async eachSecond(query: string, start: number, end: number): Promise<Series[]> {
    const span = { query, start: String(start), end: String(end), step: '1' };
    const { result } = await this.#get<{ result: RawSeries[] }>('query_range', span);
    return result.map(toSeries);
  }

  /** Every rule that it evaluates. */
  async rules(): Promise<RuleState[]> {
    const { groups } = await this.#get<{ groups: { rules: RuleState[] }[] }>('rules', {});
    return groups.flatMap(({ rules }) => rules);
  }

  /** Names of the metric families that the target has told it of. */
  async families(): Promise<string[]> {
    const families = await this.#get<{ metric: string }[]>('targets/metadata', {});
    return families.map(({ metric }) => metric);
  }

  async stop(): Promise<void> {
    await this.server.stop();
    rmSync(this.directory, { recursive: true, force: true });
  }

  async #get<Data>(what: string, parameters: Record<string, string>): Promise<Data> {
    const path = `/api/v1/${what}?${new URLSearchParams(parameters).toString()}`;
    const { body } = await request(this.url, path, { timeoutMs: 30_000 });
    const answer = JSON.parse(body) as { status: string; data: Data };
    if (answer.status !== 'success') throw new Error(`${path}: ${body}\n${this.output}`);
    return answer.data;
  }
}

interface RawSeries {
  readonly metric: Readonly<Record<string, string>>;
  readonly values: readonly (readonly [number, string])[];
}

function toSeries({ metric, values }: RawSeries): Series {
  return { metric, values: values.map(([time, value]) => [time, Number(value)]) };
}

/** How long it is looked at. More brings more rounds of faults. */
const SECONDS = Number(process.env['PROMETHEUS_SECONDS'] || 30);
/** Without a fault: 10 s are the window of the rates that are compared. */
const QUIET_SECONDS = 14;
/** Before and after a fault rates may differ: a worker's last counts are lost with it. */
const MARGIN_SECONDS = { before: 1, after: 12 };

const PATHS = ['/hello', '/hello', '/hello', '/offload/fib/10'];
// Counts only answers with 200: a call that waited too long for a thread is refused.
const LOAD =
  'http_request_duration_seconds_count{route=~"/hello|/offload/fib/:n",status_code="200"}';
const PER_SECOND = 30;
const COUNTERS = '{__name__=~".+_total|.+_bucket|.+_count|.+_sum"}';

/** No request failed, and no client gave up. */
const NOT_HAPPENED = /status_code=~|http_requests_aborted_total/;

/** A span of unix time, in seconds. */
interface Span {
  readonly from: number;
  readonly to: number;
}

describeWith(['prometheus'], 'a Prometheus that scrapes the admin listener of a cluster', () => {
  let cluster: ClusterProcess;
  let prometheus: PrometheusProcess;
  let target: string;
  let load: SteadyLoad;
  const faults: Span[] = [];
  let began: number;
  let ended: number;
  /** A range that has everything. */
  let range: string;

  beforeAll(
    async () => {
      cluster = await ClusterProcess.start({
        program: 'sample',
        options: {
          workers: 3,
          admin: { port: 0 },
          hangTimeoutMs: 5_000,
        },
      });
      const adminUrl = String(cluster.all('listening')[0]!['adminUrl']);
      target = new URL(adminUrl).host;
      prometheus = await PrometheusProcess.start(target);
      load = new SteadyLoad(cluster.url, PATHS, PER_SECOND);
      // Prometheus takes some seconds to its first scrape.
      await eventually(
        'the load in Prometheus',
        () => prometheus.samples(`${LOAD}[1m]`),
        (series) => series.length === new Set(PATHS).size,
      );
      began = now();
      await delay(QUIET_SECONDS * 1_000);
      do {
        await during(faults, () => fault(cluster));
        await delay((MARGIN_SECONDS.after + 4) * 1_000);
      } while (now() + QUIET_SECONDS < began + SECONDS);
      await load.stop();
      ended = now();
      range = `[${Math.ceil(ended - began) + 60}s]`;
    },
    (SECONDS + 120) * 1_000,
  );

  afterAll(async () => {
    await load?.stop();
    await prometheus?.stop();
    await stopAll();
  });

  it('has an answer to every scrape, whatever becomes of the workers', async () => {
    const [up] = await prometheus.samples(`up${range}`);
    expect(up!.values.length).toBeGreaterThan(((ended - began) / SCRAPE_SECONDS) * 0.8);
    expect(up!.values.filter(([, value]) => value !== 1)).toEqual([]);
  });

  it('knows the metrics by their names, although it asks for OpenMetrics first', async () => {
    // In OpenMetrics a counter is called without its _total.
    expect(await prometheus.families()).toContain('nestjs_cluster_reloads_total');
  });

  it('sees no counter fall', async () => {
    const series = await prometheus.samples(COUNTERS + range);
    expect(series.length).toBeGreaterThan(100);
    expect(series.flatMap(fallsOf)).toEqual([]);
  });

  it('finds each counter in every scrape from its first on', async () => {
    const [up] = await prometheus.samples(`up${range}`);
    const scrapes = up!.values.map(([time]) => time);
    const gaps = (await prometheus.samples(COUNTERS + range)).flatMap(({ metric, values }) => {
      const seen = new Set(values.map(([time]) => time));
      const missed = scrapes.filter((time) => time > values[0]![0] && !seen.has(time));
      return missed.length === 0 ? [] : [{ metric, missed }];
    });
    expect(gaps).toEqual([]);
  });

  it('counts the requests that clients have sent, within 20 %, outside of faults', async () => {
    const [counted] = await prometheus.eachSecond(
      `sum(rate(${LOAD}[10s]))`,
      Math.ceil(began) + 11,
      Math.floor(ended),
    );
    const quiet = counted!.values.filter(([time]) => !faults.some((span) => isNear(time, span)));
    expect(quiet.length).toBeGreaterThanOrEqual(4);
    const wrong = quiet
      .map(([time, rate]) => ({ second: time - began, rate, sent: load.rate(time - 10, time) }))
      .filter(({ rate, sent }) => Math.abs(rate / sent - 1) > 0.2);
    expect(wrong).toEqual([]);
  });

  it('has something to show in every panel of the dashboard, but of what did not happen', async () => {
    const nothing: string[] = [];
    for (const { where, expr } of dashboardQueries(dashboardFile(), target)) {
      const series = await prometheus.eachSecond(expr, ended - 30, ended);
      if (series.length === 0 && !NOT_HAPPENED.test(expr)) nothing.push(`${where}: ${expr}`);
    }
    expect(nothing).toEqual([]);
  });

  it('evaluates every rule without an error, and tells of the worker that hung', async () => {
    const rules = await prometheus.rules();
    const broken = rules.filter(({ health, lastError }) => health !== 'ok' || lastError);
    expect(broken).toEqual([]);
    const firing = rules.filter(({ state }) => state === 'firing').map(({ name }) => name);
    expect(firing).toContain('NestjsClusterWorkerHung');
    expect(firing).not.toContain('NestjsClusterDown');
  });
});

/** One worker killed, one stopped until its heartbeat tells, then all replaced one by one. */
async function fault(cluster: ClusterProcess): Promise<void> {
  const [killed, stopped] = cluster.workerPids;
  const deaths = cluster.all('worker-died').length;
  const ready = cluster.all('worker-ready').length;
  process.kill(killed!, 'SIGKILL');
  process.kill(stopped!, 'SIGSTOP');
  await cluster.until('two deaths', () => cluster.all('worker-died').length === deaths + 2);
  await cluster.until('two successors', () => cluster.all('worker-ready').length === ready + 2);
  const causes = cluster.all('worker-died').slice(deaths);
  expect(new Set(causes.map(({ cause }) => cause))).toEqual(new Set(['hang', 'killed']));
  const reloads = cluster.all('reload-ended').length;
  cluster.kill('SIGHUP');
  await cluster.until(
    'the end of the reload',
    () => cluster.all('reload-ended').length === reloads + 1,
  );
  expect(cluster.all('reload-ended').at(-1)).toMatchObject({ outcome: 'completed' });
}

async function during(spans: Span[], what: () => Promise<void>): Promise<void> {
  const from = now();
  await what();
  spans.push({ from, to: now() });
}

function isNear(time: number, { from, to }: Span): boolean {
  return time >= from - MARGIN_SECONDS.before && time <= to + MARGIN_SECONDS.after;
}

/** The points at which a series falls below its previous value. */
function fallsOf({ metric, values }: Series) {
  return values.flatMap(([time, value], index) => {
    const before = values[index - 1]?.[1] ?? value;
    return value < before ? [{ metric, time, before, value }] : [];
  });
}

function now(): number {
  return Date.now() / 1_000;
}
