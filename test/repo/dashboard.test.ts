import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { dashboardJson } from '../../sample-app/observability/dashboard/dashboard.js';
import {
  dashboardFile,
  type DashboardJson,
  OBSERVABILITY,
} from '../support/observability-files.js';

const COLUMNS = 24;

type GridPosition = DashboardJson['panels'][number]['gridPos'];

describe('the Grafana dashboard', () => {
  // `npm run dashboard` writes it: vitest's --update.
  it('is what its code makes: after a change run "npm run dashboard"', async () => {
    await expect(dashboardJson()).toMatchFileSnapshot(join(OBSERVABILITY, 'dashboard.json'));
  });

  it('takes its data source from a variable, in every panel, and says what each is for', () => {
    const { panels, templating } = dashboardFile();
    expect(templating.list.map(({ name }) => name)).toEqual(['datasource', 'job', 'instance']);
    for (const panel of panels.filter(({ type }) => type !== 'row')) {
      expect(panel, panel.title).toMatchObject({
        datasource: { uid: '${datasource}' },
        description: expect.stringMatching(/\.$/),
      });
      expect(panel.targets!.length, panel.title).toBeGreaterThan(0);
    }
  });

  it('gives each panel an id and a place of its own', () => {
    const { panels } = dashboardFile();
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    for (const [index, { title, gridPos }] of panels.entries()) {
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(COLUMNS);
      const over = panels.slice(index + 1).filter((other) => overlap(gridPos, other.gridPos));
      expect(over.map((other) => other.title)).toEqual([]);
    }
  });
});

function overlap(a: GridPosition, b: GridPosition): boolean {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}
