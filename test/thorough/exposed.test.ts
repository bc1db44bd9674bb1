import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { readDocument } from '../support/documents.js';
import { eventually } from '../support/eventually.js';
import { request } from '../support/http-client.js';
import { METRICS_SAMPLE } from '../support/metrics-page.js';
import { runCommand } from '../support/run-command.js';
import { scrapeAll } from '../support/scrape.js';
import { describeWith, SYSTEM_ENVIRONMENT } from '../support/system-packages.js';

/** A row of the reference. */
interface Row {
  readonly name: string;
  readonly labels: readonly string[];
  readonly kind: string;
  readonly meaning: string;
}

function documented(): Row[] {
  const page = readDocument('docs/reference/metrics.md');
  return [...page.matchAll(/^\| `([^`{]+)(?:\{([^}]*)\})?` *\|(?: (\w+) +\|)?(.*)\|$/gm)].map(
    ([, name, labels = '', kind = 'field', meaning]) => ({
      name: name!,
      labels: labels === '' ? [] : labels.split(','),
      kind,
      meaning: meaning!.trim(),
    }),
  );
}

/** The type of each metric family, and the labels of its samples without `le`. */
function familiesOf(text: string): Map<string, { type: string; labels: Set<string> }> {
  const families = new Map<string, { type: string; labels: Set<string> }>();
  for (const [, name, type] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    families.set(name!, { type: type!, labels: new Set() });
  }
  for (const line of text.split('\n')) {
    const [, sample, labels = ''] = METRICS_SAMPLE.exec(line) ?? [];
    if (sample === undefined) continue;
    const family = families.get(sample) ?? families.get(sample.replace(/_(bucket|sum|count)$/, ''));
    for (const [, label] of labels.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)) {
      if (label !== 'le') family!.labels.add(label!);
    }
  }
  return families;
}

/** Paths of the values below `details`, without the statuses of terminus. */
function fieldsOf(value: unknown, path = ''): string[] {
  if (Array.isArray(value)) {
    return path.endsWith('ports') ? [path] : value.flatMap((each) => fieldsOf(each, `${path}[]`));
  }
  if (typeof value !== 'object' || value === null || path.endsWith('lastExit')) return [path];
  return Object.entries(value)
    .filter(([key]) => key !== 'status')
    .flatMap(([key, each]) => fieldsOf(each, path === '' ? key : `${path}.${key}`));
}

const exposed = { text: '', families: familiesOf(''), fields: new Set<string>() };

beforeAll(async () => {
  const cluster = await ClusterProcess.start({
    program: 'sample',
    options: { admin: { port: 0 } },
  });
  const adminUrl = String(cluster.all('listening')[0]!['adminUrl']);
  // These requests cause the events whose metrics have no series until the first event.
  await eventually(
    'a thread in time',
    () => request(cluster.url, '/offload/fib/1'),
    ({ status }) => status === 200,
  );
  await request(cluster.url, '/wait/60000', { timeoutMs: 300 });
  const page = await eventually(
    'a page with all of that',
    () => scrapeAll(adminUrl),
    ({ text }) =>
      /^http_requests_aborted_total\{/m.test(text) &&
      /^nestjs_cluster_offload_run_seconds_count\{/m.test(text),
  );
  for (const url of [cluster.url, adminUrl]) {
    const { body } = await request(url, '/health');
    for (const field of fieldsOf(JSON.parse(body).details)) exposed.fields.add(field);
  }
  exposed.text = page.text;
  exposed.families = familiesOf(page.text);
});

afterEach(stopAll);

describe('the reference of everything that is measured', () => {
  const rows = documented();

  it('has a meaning for each', () => {
    expect(rows.length).toBeGreaterThan(80);
    expect(rows.filter(({ meaning }) => meaning === '')).toEqual([]);
  });

  it('has every metric of the sample app, with its type and its labels, and no other', () => {
    const said = rows.filter(({ kind }) => kind !== 'field');
    const typed = said.map(({ name, kind }) => `${name} ${kind}`);
    const shown = [...exposed.families].map(([name, { type }]) => `${name} ${type}`);
    expect(shown.toSorted()).toEqual(typed.toSorted());
    // A metric whose event has not happened has no series, so its labels cannot be checked.
    const seen = [...exposed.families].filter(([, { labels }]) => labels.size > 0);
    const labelsOf = new Map(said.map(({ name, labels }) => [name, labels.toSorted()]));
    expect(seen.map(([name, { labels }]) => [name, [...labels].toSorted()])).toEqual(
      seen.map(([name]) => [name, labelsOf.get(name)]),
    );
    const names = seen.map(([name]) => name);
    for (const name of ['http_requests_aborted_total', 'nestjs_cluster_offload_run_seconds']) {
      expect(names).toContain(name);
    }
  });

  it('has every field of the health reports, and no other', () => {
    const fields = rows.filter(({ kind }) => kind === 'field');
    const conditional = fields.filter(({ meaning }) => meaning.includes('; missing '));
    const always = fields.filter((row) => !conditional.includes(row)).map(({ name }) => name);
    const known = new Set(fields.map(({ name }) => name));
    expect([...exposed.fields].filter((name) => !known.has(name))).toEqual([]);
    expect(always.filter((name) => !exposed.fields.has(name))).toEqual([]);
  });
});

describeWith(['promtool'], 'promtool', () => {
  it('accepts the metrics page', async () => {
    const options = { cwd: '/', env: SYSTEM_ENVIRONMENT, input: exposed.text };
    const done = { code: 0, stdout: '', stderr: '' };
    expect(await runCommand('promtool', ['check', 'metrics'], options)).toEqual(done);
  });
});
