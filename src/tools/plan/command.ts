import { type Command, Option } from 'commander';
import { decimal, wholeNumber } from '../cli/arguments.js';
import { withJson } from '../control/control-command.js';
import { printJson, printLines } from '../control/view/output.js';
import { DEFAULTS, type Load, planCapacity, type Room } from './capacity-plan.js';
import { linesOf } from './report.js';

const MAX_RPS = 1e8;
const MAX_MS = 3_600_000;
const MAX_CORES = 256;
const MAX_MEMORY_MB = 99_999;
const MAX_POOL = 9_999;

/** Closer to 1 nothing is left, and queues have no end. */
const MAX_UTILIZATION = 0.95;

type Input = keyof typeof DEFAULTS;

const INPUTS: Readonly<Record<Input, readonly [string, string, (text: string) => number]>> = {
  cpuMs: ['--cpu-ms <ms>', 'CPU of a request, as tune measures it', ms(0.001)],
  waitMs: ['--wait-ms <ms>', 'how long a request waits for the database and others', ms(0)],
  offloadMs: ['--offload-ms <ms>', 'CPU of a @CpuBound() call', ms(0)],
  offloadShare: [
    '--offload-share <ratio>',
    'share of the requests that make such a call',
    decimal(0, 1, 'a ratio'),
  ],
  coresPerPod: ['--cores-per-pod <n>', 'cores of a pod', wholeNumber(MAX_CORES, 'a whole number')],
  memoryPerWorkerMb: [
    '--memory-per-worker-mb <mb>',
    'memory of a worker',
    wholeNumber(MAX_MEMORY_MB, 'megabytes'),
  ],
  poolSize: [
    '--pool-size <n>',
    'database connections of a worker',
    wholeNumber(MAX_POOL, 'a whole number'),
  ],
  utilization: [
    '--utilization <ratio>',
    'share of the cores that the load may take',
    decimal(0.05, MAX_UTILIZATION, 'a ratio'),
  ],
};

/** Adds the command that says what a load needs. */
export function addPlanCommand(program: Command): void {
  const plan = withJson(
    program.command('plan'),
    'plan --rps 20000 --cpu-ms 0.2 --wait-ms 40 --pool-size 20',
  )
    .summary('Computes the workers, pods, memory and connections that a load needs')
    .description(
      'Computes the workers, pods, threads, memory and database connections that a load needs. ' +
        'Nothing is measured: tune measures --cpu-ms.',
    )
    .addOption(
      new Option('--rps <n>', 'requests a second')
        .argParser(decimal(0.001, MAX_RPS, 'requests a second'))
        .makeOptionMandatory(),
    );
  for (const [name, [flags, description, parser]] of Object.entries(INPUTS)) {
    plan.addOption(
      new Option(flags, description).argParser(parser).default(DEFAULTS[name as Input]),
    );
  }
  plan.action(({ json, ...input }: Load & Room & { json: boolean }) => {
    const assumed = Object.keys(INPUTS).filter(
      (name) => plan.getOptionValueSource(name) === 'default' && matters(name, input),
    );
    const result = planCapacity(input, input);
    if (json) printJson({ input, assumed, plan: result });
    else
      printLines(
        linesOf(
          result,
          input,
          assumed.map((name) => given(name, input)),
        ),
      );
  });
}

/** Whether the plan depends on an option: only such options are listed as assumptions. */
function matters(name: string, { offloadMs }: Load): boolean {
  return name !== 'offloadMs' && (name !== 'offloadShare' || offloadMs > 0);
}

/** As one would give it. */
function given(name: string, input: Load & Room): string {
  return `${INPUTS[name as Input][0].split(' ')[0]} ${input[name as Input]}`;
}

function ms(min: number): (text: string) => number {
  return decimal(min, MAX_MS, 'milliseconds');
}
