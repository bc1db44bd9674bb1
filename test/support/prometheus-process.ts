import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from './free-ports.js';
import { request } from './http-client.js';
import { OBSERVABILITY, observabilityFile } from './observability-files.js';
import { ServerProcess } from './server-process.js';

const RULES = ['recording.rules.yml', 'alerts.rules.yml'];

/** A series and its values as they were scraped, or as a rule has made them. */
export interface Series {
  readonly metric: Readonly<Record<string, string>>;
  /** Unix time in seconds, value. */
  readonly values: readonly (readonly [number, number])[];
}

export interface RuleState {
  readonly name: string;
  readonly health: string;
  readonly lastError?: string;
  /** `inactive`, `pending` or `firing`. Only alerts have a state. */
  readonly state?: string;
}

/** Seconds between two scrapes, and for one: a busy machine may take more than one for it. */
export const SCRAPE_SECONDS = 2;

/** A Prometheus with the sample app's configuration and rules, each 2 s instead of each 15. */
export class PrometheusProcess {
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
