import type { Builder } from '@grafana/grafana-foundation-sdk/cog';
import {
  AnnotationQueryBuilder,
  type Dashboard,
  DashboardBuilder,
  DashboardCursorSync,
  DatasourceVariableBuilder,
  type Panel,
  QueryVariableBuilder,
  RowBuilder,
  VariableRefresh,
  VariableSort,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { offload } from './offload.row.js';
import { overview } from './overview.row.js';
import { DATA_SOURCE } from './panels.js';
import { primary } from './primary.row.js';
import { select } from './queries.js';
import { requests } from './requests.row.js';
import { workers } from './workers.row.js';

/** A change shows in each step of this window: Grafana draws them as one mark. */
const MARK_WINDOW = '1m';

/** The dashboard of a cluster: `npm run dashboard` writes it to ../dashboard.json. */
export function createDashboard(): Dashboard {
  const builder = new DashboardBuilder('nestjs-cluster')
    .uid('nestjs-cluster')
    .description('Clusters of NestJS workers: requests, workers, CPU-bound methods, primary.')
    .tags(['nestjs-cluster', 'nodejs'])
    .tooltip(DashboardCursorSync.Crosshair)
    .time({ from: 'now-3h', to: 'now' })
    .refresh('30s')
    .withVariable(
      new DatasourceVariableBuilder('datasource').label('Data source').type('prometheus'),
    )
    .withVariable(labelVariable('job', 'Job', 'nestjs_cluster_workers_desired').multi(false))
    .withVariable(
      labelVariable('instance', 'Instance', 'nestjs_cluster_workers_desired{job=~"$job"}')
        .multi(true)
        .includeAll(true)
        .current({ text: 'All', value: '$__all' }),
    )
    .annotation(
      mark('Reloads', 'blue', 'changes', 'nestjs_cluster_generation').titleFormat(
        'reload on {{instance}}',
      ),
    )
    .annotation(
      mark('Failures', 'red', 'increase', 'nestjs_cluster_worker_restarts_total').titleFormat(
        '{{cause}}: worker {{worker}} on {{instance}}',
      ),
    );
  let id = 0;
  const numbered = (panel: Builder<Panel>): Builder<Panel> => {
    const panelId = ++id;
    return { build: () => ({ ...panel.build(), id: panelId }) };
  };
  for (const { title, panels } of [overview, requests, workers, offload, primary]) {
    builder.withRow(new RowBuilder(title).id(++id).collapsed(false));
    for (const panel of panels) builder.withPanel(numbered(panel));
  }
  return builder.build();
}

/** What is written to dashboard.json. */
export function dashboardJson(): string {
  return `${JSON.stringify(createDashboard(), null, 2)}\n`;
}

/** A choice of the values that a label has in the series of a metric. */
function labelVariable(label: string, title: string, metric: string): QueryVariableBuilder {
  return new QueryVariableBuilder(label)
    .label(title)
    .datasource(DATA_SOURCE)
    .query(`label_values(${metric}, ${label})`)
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .sort(VariableSort.AlphabeticalAsc);
}

/** A vertical line in every panel where a metric has changed. */
function mark(
  name: string,
  colour: string,
  change: 'changes' | 'increase',
  metric: string,
): AnnotationQueryBuilder {
  return new AnnotationQueryBuilder()
    .name(name)
    .datasource(DATA_SOURCE)
    .enable(true)
    .iconColor(colour)
    .expr(`${change}(${select(metric)}[${MARK_WINDOW}]) > 0`)
    .step('15s');
}
