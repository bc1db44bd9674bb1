import type { Command } from 'commander';
import { setTimeout as delay } from 'node:timers/promises';
import type { ClusterStatus } from '../control/cluster-status.js';
import { isAlive } from '../contract/files/stale-sockets.js';
import { ClusterUnreachableError } from '../contract/errors/index.js';
import type { ControlClient } from './control-client.js';
import { clientFor, controlCommand, type ControlOptions } from './control-command.js';
import { labelOf } from './found-cluster.js';
import { endWithReader, printJson, printLines } from './view/output.js';
import { Screen } from './view/screen.js';
import { TopView } from './view/top-view.js';
import { POLL_MS, SILENCE } from './view/watched.js';

export function addTopCommand(program: Command): void {
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
    const view = new TopView();
    const warn = (): void => void process.stderr.write(`${SILENCE}\n`);
    if (options.json) return poll(client, printJson, warn);
    if (!process.stdout.isTTY) {
      return poll(client, (status) => printLines([...view.lines(status), '']), warn);
    }
    let screen: Screen | undefined;
    const onKey = (key: string): void => {
      view.press(key);
      screen?.draw(view.again());
    };
    const draw = (status: ClusterStatus): void => {
      // The first status is there, so an error of it is printed to the terminal as it was.
      screen ??= new Screen(onKey);
      screen.draw(view.lines(status));
    };
    try {
      await poll(client, draw, () => screen?.draw([SILENCE, ...view.again().slice(1)]));
    } finally {
      screen?.leave();
    }
  });
}

/** Asks for the status once a second. @throws ClusterUnreachableError once the primary has ended. */
async function poll(
  client: ControlClient,
  show: (status: ClusterStatus) => void,
  silent: () => void,
): Promise<never> {
  let pid: number | undefined;
  for (;;) {
    try {
      const status = await client.get<ClusterStatus>('/v1/status');
      pid = status.pid;
      show(status);
    } catch (error) {
      if (!(error instanceof ClusterUnreachableError) || pid === undefined) throw error;
      if (!isAlive(pid)) throw new ClusterUnreachableError(labelOf(client.cluster), 'it has ended');
      silent();
    }
    await delay(POLL_MS);
  }
}
