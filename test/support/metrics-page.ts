/** A line of a page: the name, the labels without their braces, the value. */
export const METRICS_SAMPLE = /^([\w:]+)(?:\{(.*)\})? (\S+)$/;

/** A page in Prometheus text format, as a test asks of it. */
export class MetricsPage {
  readonly #samples: {
    readonly name: string;
    readonly labels: Record<string, string>;
    readonly value: number;
  }[];

  constructor(readonly text: string) {
    this.#samples = text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => {
        const [, name, labels = '', value] = METRICS_SAMPLE.exec(line) ?? [];
        if (name === undefined || value === undefined) throw new Error(`not a sample: ${line}`);
        return {
          name,
          labels: Object.fromEntries(
            [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, text]) => [
              key!,
              text!,
            ]),
          ),
          value: Number(value.replace('Inf', 'Infinity')),
        };
      });
  }

  /** Values of every series of `name` whose labels match. */
  values(name: string, labels: Record<string, string> = {}): number[] {
    return this.#samples
      .filter((sample) => sample.name === name)
      .filter((sample) =>
        Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
      )
      .map(({ value }) => value);
  }

  /** Their sum; 0 where there is none. */
  sum(name: string, labels: Record<string, string> = {}): number {
    return this.values(name, labels).reduce((sum, value) => sum + value, 0);
  }

  /** Every value a label takes in the series of `name`. */
  labelValues(name: string, label: string): string[] {
    return [
      ...new Set(
        this.#samples
          .filter((sample) => sample.name === name)
          .map(({ labels }) => labels[label] ?? ''),
      ),
    ];
  }
}
