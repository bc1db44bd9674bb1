import type { Builder } from '@grafana/grafana-foundation-sdk/cog';
import * as common from '@grafana/grafana-foundation-sdk/common';
import {
  MappingType,
  type Panel,
  ThresholdsConfigBuilder,
  ThresholdsMode,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder as StatBuilder } from '@grafana/grafana-foundation-sdk/stat';
import { PanelBuilder as StateTimelineBuilder } from '@grafana/grafana-foundation-sdk/statetimeline';
import { PanelBuilder as TimeSeriesBuilder } from '@grafana/grafana-foundation-sdk/timeseries';

/** The Prometheus that the variable `datasource` has chosen. */
export const DATA_SOURCE: common.DataSourceRef = { type: 'prometheus', uid: '${datasource}' };

/** A Grafana dashboard is 24 columns wide. */
const THIRD = 8;
const HEIGHT = 8;
const STAT_HEIGHT = 4;

/** A title and the panels below it. */
export interface Row {
  readonly title: string;
  readonly panels: readonly Builder<Panel>[];
}

/** PromQL by the legend of its series: `{ 'worker {{worker}}': 'up' }`. */
export type Queries = Readonly<Record<string, string>>;

export interface PanelOptions {
  readonly title: string;
  /** Says what the panel shows and when to worry, at its `i`. */
  readonly description: string;
  /** A unit of Grafana: `s`, `bytes`, `reqps`, … */
  readonly unit: string;
  readonly queries: Queries;
  /** Columns of 24. */
  readonly width?: number;
}

export interface TimeSeriesOptions extends PanelOptions {
  /** Series on top of each other, where their sum means something. */
  readonly stacked?: boolean;
  readonly max?: number;
  /** Above it is red. */
  readonly limit?: number;
}

/** Lines over time; the legend tells mean and largest of each. */
export function timeSeries(options: TimeSeriesOptions): Builder<Panel> {
  const { title, description, unit, stacked = false, max, limit, width = THIRD } = options;
  const panel = new TimeSeriesBuilder()
    .title(title)
    .description(description)
    .datasource(DATA_SOURCE)
    .unit(unit)
    .min(0)
    .span(width)
    .height(HEIGHT)
    .lineWidth(1)
    .fillOpacity(stacked ? 40 : 8)
    .showPoints(common.VisibilityMode.Never)
    .stacking(
      new common.StackingConfigBuilder().mode(
        stacked ? common.StackingMode.Normal : common.StackingMode.None,
      ),
    )
    .legend(
      new common.VizLegendOptionsBuilder()
        .displayMode(common.LegendDisplayMode.Table)
        .placement(common.LegendPlacement.Bottom)
        .showLegend(true)
        .calcs(['mean', 'max'])
        .sortBy('Max')
        .sortDesc(true),
    )
    .tooltip(
      new common.VizTooltipOptionsBuilder()
        .mode(common.TooltipDisplayMode.Multi)
        .sort(common.SortOrder.Descending),
    )
    .targets(targets(options.queries));
  if (max !== undefined) panel.max(max);
  if (limit !== undefined) {
    panel
      .thresholds(steps([null, 'green'], [limit, 'red']))
      .thresholdsStyle(
        new common.GraphThresholdsStyleConfigBuilder().mode(common.GraphThresholdsStyleMode.Dashed),
      );
  }
  return panel;
}

export interface StatOptions extends PanelOptions {
  /** From which value on which colour; the first from `null`. */
  readonly colours: readonly (readonly [number | null, string])[];
  readonly decimals?: number;
}

/** One number, the latest. */
export function stat(options: StatOptions): Builder<Panel> {
  const { title, description, unit, colours, decimals, width = 3 } = options;
  const panel = new StatBuilder()
    .title(title)
    .description(description)
    .datasource(DATA_SOURCE)
    .unit(unit)
    .span(width)
    .height(STAT_HEIGHT)
    .colorMode(common.BigValueColorMode.Value)
    .graphMode(common.BigValueGraphMode.Area)
    .reduceOptions(new common.ReduceDataOptionsBuilder().calcs(['lastNotNull']))
    .thresholds(steps(...colours))
    .targets(targets(options.queries));
  if (decimals !== undefined) panel.decimals(decimals);
  return panel;
}

export interface StatesOptions extends Omit<PanelOptions, 'unit'> {
  /** Text and colour of 0 and of 1. */
  readonly states: readonly [readonly [string, string], readonly [string, string]];
}

/** A bar for each series, coloured by whether it is 0 or 1. */
export function states(options: StatesOptions): Builder<Panel> {
  const [zero, one] = options.states;
  return new StateTimelineBuilder()
    .title(options.title)
    .description(options.description)
    .datasource(DATA_SOURCE)
    .span(options.width ?? THIRD)
    .height(HEIGHT)
    .showValue(common.VisibilityMode.Never)
    .mappings([
      {
        type: MappingType.ValueToText,
        options: {
          '0': { text: zero[0], color: zero[1], index: 0 },
          '1': { text: one[0], color: one[1], index: 1 },
        },
      },
    ])
    .legend(
      new common.VizLegendOptionsBuilder()
        .displayMode(common.LegendDisplayMode.List)
        .placement(common.LegendPlacement.Bottom)
        .showLegend(true)
        .calcs([]),
    )
    .targets(targets(options.queries));
}

function targets(queries: Queries): DataqueryBuilder[] {
  return Object.entries(queries).map(([legend, expr], index) =>
    new DataqueryBuilder()
      .refId(String.fromCharCode('A'.charCodeAt(0) + index))
      .expr(expr)
      .legendFormat(legend),
  );
}

function steps(...colours: readonly (readonly [number | null, string])[]): ThresholdsConfigBuilder {
  return new ThresholdsConfigBuilder()
    .mode(ThresholdsMode.Absolute)
    .steps(colours.map(([value, color]) => ({ value, color })));
}
