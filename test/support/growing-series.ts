import { expect } from 'vitest';
import type { MetricsPage } from './metrics-page.js';

/** Every series that may only grow, by its name and labels as they stand on the page. */
export function growingSeries(page: MetricsPage): Map<string, number> {
  const types = new Map<string, string>();
  for (const [, name, type] of page.text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    types.set(name!, type!);
  }
  const grows = (name: string, line: string): boolean => {
    const type = types.get(name) ?? types.get(name.replace(/_(bucket|sum|count)$/, ''));
    expect([name, type]).not.toEqual([name, undefined]);
    return type !== 'gauge' && !(type === 'summary' && line.includes('quantile='));
  };
  return new Map(
    page.text
      .split('\n')
      .filter(
        (line) => line !== '' && !line.startsWith('#') && grows(/^[\w:]+/.exec(line)![0], line),
      )
      .map((line) => {
        const end = line.lastIndexOf(' ');
        return [line.slice(0, end), Number(line.slice(end + 1))];
      }),
  );
}

/** Describes each series that is smaller in the later page, or missing from it. */
export function falls(before: Map<string, number>, after: Map<string, number>): string[] {
  return [...before].flatMap(([series, value]) => {
    const now = after.get(series);
    return now === undefined || now < value ? [`${series} ${value} → ${now}`] : [];
  });
}
