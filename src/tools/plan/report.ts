import { type Column, formatNumber, formatTable } from '../control/view/table.js';
import type { CapacityPlan, Load, Room } from './capacity-plan.js';

interface Row {
  readonly what: string;
  readonly each: string;
  readonly all: string;
}

const COLUMNS: readonly Column<Row>[] = [
  { title: '', value: ({ what }) => what, left: true },
  { title: 'each pod', value: ({ each }) => each },
  { title: 'in all', value: ({ all }) => all },
];

/** The text of a plan, line by line. */
export function linesOf(
  plan: CapacityPlan,
  input: Load & Room,
  assumed: readonly string[],
): string[] {
  return [
    ...tableOf(plan, input),
    '',
    ...sentencesOf(plan, input),
    ...(assumed.length === 0 ? [] : [`Assumed: ${assumed.join(', ')}.`]),
    `CLUSTER_WORKERS=${plan.workers}`,
    ...(plan.threads === 0 ? [] : [`CLUSTER_THREADS=${plan.threads}`]),
  ];
}

function tableOf(plan: CapacityPlan, { rps, poolSize }: Load & Room): string[] {
  const { pods, workers, threads, memoryMb, busyCores, inFlight, databaseConnections } = plan;
  const row = (what: string, each: number, digits = 0, all = each * pods): Row => ({
    what,
    each: formatNumber(each, digits),
    all: formatNumber(all, digits),
  });
  return formatTable(COLUMNS, [
    { what: 'pods', each: '', all: String(pods) },
    row('workers', workers),
    row('threads', workers * threads),
    row('requests/s', rps / pods),
    row('CPU cores busy', busyCores / pods, 2),
    row('memory MB', memoryMb),
    row('requests in flight', inFlight / pods, 1),
    row('database connections', poolSize * (workers + 1), 0, databaseConnections),
  ]);
}

function sentencesOf(plan: CapacityPlan, input: Load & Room): string[] {
  const { pods, threads, busyCores, waitingPerWorker, limitRps } = plan;
  const { rps, coresPerPod, poolSize, utilization } = input;
  const oneLess = busyCores / ((pods - 1) * coresPerPod);
  return [
    `An answer takes ${formatNumber(plan.responseMs, 2)} ms on average, ${formatNumber(plan.queueMs, 2)} ms of it in queues. ` +
      `The event loops are busy for ${percent(plan.eventLoopUtilization)} of the time` +
      `${threads === 0 ? '' : `, the threads for ${percent(plan.threadUtilization)}`}.`,
    `Everything is full at ${formatNumber(limitRps)} requests a second, ${formatNumber(limitRps / rps, 2)} times the load.`,
    pods === 1
      ? 'One pod is enough for the load; with a second one a node may fail.'
      : oneLess < 1
        ? `With a pod less the cores are busy for ${percent(oneLess)} of the time.`
        : 'With a pod less the load is too much.',
    'The database connections are those of a rollout, with a pod more, and of a reload, with a worker more in each.',
    ...(waitingPerWorker > utilization * poolSize
      ? [
          `In each worker ${formatNumber(waitingPerWorker, 1)} requests wait at a time. If all of that is the database, a pool of ${poolSize} is too small: they queue for it.`,
        ]
      : []),
  ];
}

function percent(ratio: number): string {
  return `${(ratio * 100).toFixed(0)} %`;
}
