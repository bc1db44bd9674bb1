import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

/** The folder of the sample app's dashboard and rules. */
export const OBSERVABILITY = join(import.meta.dirname, '../../sample-app/observability');

interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export function alertRules(): AlertRule[] {
  return rulesOf<AlertRule>('alerts.rules.yml');
}

export function recordingRules() {
  return rulesOf<{ readonly record: string; readonly expr: string }>('recording.rules.yml');
}

export function observabilityFile(name: string): string {
  return readFileSync(join(OBSERVABILITY, name), 'utf8');
}

/** The part of dashboard.json that is looked at. */
export interface DashboardJson {
  readonly panels: readonly {
    readonly id: number;
    readonly type: string;
    readonly title: string;
    readonly description?: string;
    readonly datasource?: { readonly uid: string };
    readonly gridPos: { x: number; y: number; w: number; h: number };
    readonly targets?: readonly { readonly expr: string }[];
  }[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly query: string }[];
  };
  readonly annotations: {
    readonly list: readonly {
      readonly name: string;
      readonly expr: string;
    }[];
  };
}

export function dashboardFile(): DashboardJson {
  return JSON.parse(observabilityFile('dashboard.json')) as DashboardJson;
}

/** Every PromQL there is in the dashboard, of panels, marks and variables, with a value for each variable. */
export function dashboardQueries({ panels, annotations, templating }: DashboardJson) {
  const queries = [
    ...panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr }) => ({ where: title, expr })),
    ),
    ...annotations.list.map(({ name, expr }) => ({ where: name, expr })),
    ...templating.list.flatMap(({ name, query }) => {
      const [, expr] = /^label_values\((.*), \w+\)$/.exec(query) ?? [];
      return expr === undefined ? [] : [{ where: name, expr }];
    }),
  ];
  return queries.map((query) => ({ ...query, expr: withVariables(query.expr) }));
}

/** As Grafana puts them in. */
function withVariables(expr: string): string {
  return expr
    .replaceAll('$__rate_interval', '1m')
    .replaceAll('$__range', '3h')
    .replaceAll('$job', 'nestjs-cluster')
    .replaceAll('$instance', '127.0.0.1:9464');
}

function rulesOf<Rule>(name: string): Rule[] {
  const { groups } = parse(observabilityFile(name)) as { groups: { rules: Rule[] }[] };
  return groups.flatMap(({ rules }) => rules);
}
