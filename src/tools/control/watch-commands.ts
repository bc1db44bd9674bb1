import type { Command } from 'commander';
import { ClusterUnreachableError } from '../../contract/errors/index.js';
import { clientFor, controlCommand, type ControlOptions } from './control-command.js';
import { labelOf } from './found-cluster.js';
import { endWithReader, jsonLine, printJson, printLine, printLines } from './view/output.js';
import { Screen } from './view/screen.js';
import { noticingSilence, SILENCE } from './view/silence.js';
import { TopView } from './view/top-view.js';

export function addWatchCommands(program: Command): void {
  const events = controlCommand(program, {
    usage: 'events',
    summary: 'Follows what happens in a cluster',
    description: 'Writes a line for each event of the cluster from now on, until it ends or Ctrl-C',
    example: 'events --json',
  }).action(async (options: ControlOptions) => {
    endWithReader();
    const client = await clientFor(events, options);
    const warn = (): void => void process.stderr.write(`${SILENCE}\n`);
    let last: string | undefined;
    for await (const told of noticingSilence(await client.events(), warn)) {
      if (told.type !== 'log') continue;
      const { data } = told;
      last = data.name;
      if (options.json) printJson(data);
      else printLine(`${data.at} ${data.level.padEnd(5)} ${data.text}`);
    }
    if (last !== 'stopped') throw new ClusterUnreachableError(labelOf(client.cluster), GONE);
  });

  const top = controlCommand(program, {
    usage: 'top',
    summary: 'Shows the workers of a cluster, live',
    description:
      'Shows the workers of a cluster once a second. Keys: s r l m sort by slot, requests, event loop, memory; q ends. ' +
      'Where standard output is no terminal it writes plain lines',
    example: 'top --cluster shop',
  }).action(async (options: ControlOptions) => {
    endWithReader();
    const client = await clientFor(top, options);
    const view = new TopView();
    const told = await client.events();
    if (options.json || !process.stdout.isTTY) {
      const warn = (): void => void process.stderr.write(`${SILENCE}\n`);
      for await (const { type, data } of noticingSilence(told, warn)) {
        if (type !== 'sample') continue;
        if (options.json) process.stdout.write(`${jsonLine(data)}\n`);
        else printLines([...view.lines(data), '']);
      }
    } else {
      const screen = new Screen((key) => {
        view.press(key);
        screen.draw(view.again());
      });
      const warn = (): void => screen.draw([SILENCE, ...view.again().slice(1)]);
      try {
        for await (const { type, data } of noticingSilence(told, warn)) {
          if (type === 'sample') screen.draw(view.lines(data));
        }
      } finally {
        screen.leave();
      }
    }
    throw new ClusterUnreachableError(labelOf(client.cluster), GONE);
  });
}

const GONE = 'it has ended';
