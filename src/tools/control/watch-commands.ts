import type { Command } from 'commander';
import { ClusterUnreachableError } from '../../contract/errors/index.js';
import type { ControlClient } from './control-client.js';
import { clientFor, controlCommand, type ControlOptions } from './control-command.js';
import { labelOf } from './found-cluster.js';
import { endWithReader, printJson, printLine, printLines } from './view/output.js';
import { Screen } from './view/screen.js';
import { noticingSilence, SILENCE, warnOfSilence } from './view/silence.js';
import { TopView } from './view/top-view.js';

export function addWatchCommands(program: Command): void {
  controlCommand(program, {
    name: 'events',
    summary: 'Follows what happens in a cluster',
    description: 'Writes a line for each event of the cluster from now on, until it ends or Ctrl-C',
    example: 'events --json',
  }).action(async (options: ControlOptions) => {
    endWithReader();
    const client = await clientFor(options);
    if ((await printEvents(client, options)) !== 'stopped') throw ended(client);
  });

  controlCommand(program, {
    name: 'top',
    summary: 'Shows the workers of a cluster, live',
    description:
      'Shows the workers of a cluster once a second. Keys: s r l m sort by slot, requests, event loop, memory; q ends. ' +
      'Where standard output is not a terminal it writes plain lines',
    example: 'top --cluster shop',
  }).action(async (options: ControlOptions) => {
    endWithReader();
    const client = await clientFor(options);
    if (options.json || !process.stdout.isTTY) await printSamples(client, options);
    else await drawSamples(client);
    throw ended(client);
  });
}

/** @returns the name of the last event. */
async function printEvents(
  client: ControlClient,
  { json }: ControlOptions,
): Promise<string | undefined> {
  let last: string | undefined;
  for await (const { type, data } of noticingSilence(await client.events(), warnOfSilence)) {
    if (type !== 'log') continue;
    last = data.name;
    if (json) printJson(data);
    else printLine(`${data.at} ${data.level.padEnd(5)} ${data.text}`);
  }
  return last;
}

async function printSamples(client: ControlClient, { json }: ControlOptions): Promise<void> {
  const view = new TopView();
  for await (const { type, data } of noticingSilence(await client.events(), warnOfSilence)) {
    if (type !== 'sample') continue;
    if (json) printJson(data);
    else printLines([...view.lines(data), '']);
  }
}

async function drawSamples(client: ControlClient): Promise<void> {
  const view = new TopView();
  const events = await client.events();
  const screen = new Screen((key) => {
    view.press(key);
    screen.draw(view.again());
  });
  const warn = (): void => screen.draw([SILENCE, ...view.again().slice(1)]);
  try {
    for await (const { type, data } of noticingSilence(events, warn)) {
      if (type === 'sample') screen.draw(view.lines(data));
    }
  } finally {
    screen.leave();
  }
}

function ended({ cluster }: ControlClient): ClusterUnreachableError {
  return new ClusterUnreachableError(labelOf(cluster), 'it has ended');
}
