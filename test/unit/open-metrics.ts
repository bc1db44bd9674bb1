/**
 * A strict reader of OpenMetrics text 1.0, of what this package writes of it: it throws where
 * Prometheus would refuse a page, and where the specification says MUST.
 *
 * @see https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md
 */
export interface OpenMetricsFamily {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: readonly OpenMetricsSample[];
}

export interface OpenMetricsSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const META = new RegExp(`^# (HELP|TYPE) (${NAME}) (.*)$`);
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(.*)\\})? (\\S+)$`);
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\[\\"n])*)"(?:,(?=.)|$)/;

/** Suffixes that the samples of each type have. */
const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  counter: ['_total'],
  unknown: [''],
  gauge: [''],
  histogram: ['_bucket', '_sum', '_count'],
  summary: ['', '_sum', '_count'],
};

export function parseOpenMetrics(page: string): OpenMetricsFamily[] {
  if (!page.endsWith('# EOF\n')) throw new Error('the page does not end in # EOF');
  const lines = page.slice(0, -'# EOF\n'.length).split('\n');
  if (lines.pop() !== '') throw new Error('# EOF is no line of its own');
  const families: (OpenMetricsFamily & { samples: OpenMetricsSample[] })[] = [];
  const seen = new Set<string>();
  let help: { readonly name: string; readonly text: string } | undefined;
  for (const line of lines) {
    const meta = META.exec(line);
    const family = families.at(-1);
    if (meta?.[1] === 'HELP') {
      help = { name: meta[2]!, text: unescape(meta[3]!) };
    } else if (meta !== null) {
      const [, , name, type] = meta as unknown as [string, string, string, string];
      if (help?.name !== name) throw new Error(`${name} has no HELP right before its TYPE`);
      if (SUFFIXES[type] === undefined) throw new Error(`${name} has the type ${type}`);
      if (type === 'counter' && name.endsWith('_total')) throw new Error(`${name} is a counter`);
      if (families.some((each) => each.name === name)) throw new Error(`${name} is there twice`);
      families.push({ name, type, help: help.text, samples: [] });
      help = undefined;
    } else if (family === undefined || help !== undefined) {
      throw new Error(`not a line at this place: ${line}`);
    } else {
      const sample = parseSample(line);
      const key = JSON.stringify([
        sample.name,
        Object.entries(sample.labels).toSorted(([a], [b]) => (a < b ? -1 : 1)),
      ]);
      if (seen.has(key)) throw new Error(`there is twice: ${line}`);
      seen.add(key);
      checkSample(family, sample);
      family.samples.push(sample);
    }
  }
  return families;
}

function parseSample(line: string): OpenMetricsSample {
  const match = SAMPLE.exec(line);
  if (match === null) throw new Error(`not a sample: ${line}`);
  const [, name, labelText, valueText] = match as unknown as [string, string, string?, string?];
  const labels: Record<string, string> = {};
  for (let rest = labelText ?? ''; rest !== '';) {
    const label = LABEL.exec(rest);
    if (label === null) throw new Error(`not a label at ${rest} in ${line}`);
    if (label[1]! in labels) throw new Error(`${label[1]} is there twice in ${line}`);
    labels[label[1]!] = unescape(label[2]!);
    rest = rest.slice(label[0].length);
  }
  return { name, labels, value: parseValue(valueText!) };
}

function checkSample({ name, type }: OpenMetricsFamily, sample: OpenMetricsSample): void {
  const suffix = SUFFIXES[type]!.find((each) => name + each === sample.name);
  if (suffix === undefined) throw new Error(`${sample.name} is no sample of the ${type} ${name}`);
  const { le, quantile } = sample.labels;
  if ((suffix === '_bucket') !== (type === 'histogram' && le !== undefined)) {
    throw new Error(`${sample.name} has le=${le}`);
  }
  if ((type === 'summary' && suffix === '') !== (type === 'summary' && quantile !== undefined)) {
    throw new Error(`${sample.name} has quantile=${quantile}`);
  }
  const counts = type === 'counter' || suffix === '_bucket' || suffix === '_count';
  if (counts && !(sample.value >= 0)) throw new Error(`${sample.name} is ${sample.value}`);
}

function parseValue(text: string): number {
  if (text === 'NaN') return NaN;
  if (text === '+Inf') return Infinity;
  if (text === '-Inf') return -Infinity;
  if (!/^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(text))
    throw new Error(`not a value: ${text}`);
  return Number(text);
}

function unescape(text: string): string {
  return text.replaceAll(/\\(.)/g, (_, character: string) => {
    if (character === 'n') return '\n';
    if (character !== '\\' && character !== '"') throw new Error(`not an escape: \\${character}`);
    return character;
  });
}
