import { readdirSync } from 'node:fs';
import net from 'node:net';
import { afterEach, expect, it, onTestFinished } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { request } from '../support/http-client.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

afterEach(stopAll);

const OPEN_FILES = 512;
const POLLS = 900;
const PATH = '/socket.io/?EIO=4&transport=polling';

/** Long polls. The server has nothing to send, so it answers none of them before its next ping. */
class Polls {
  readonly sockets: net.Socket[] = [];
  ended = 0;

  get waiting(): number {
    return this.sockets.length - this.ended;
  }

  begin(url: string, sid: string): void {
    const { port, hostname } = new URL(url);
    const socket = net.connect(Number(port), hostname);
    socket.on('error', () => {}).resume();
    socket.on('close', () => (this.ended += 1));
    socket.write(`GET ${PATH}&sid=${sid} HTTP/1.1\r\nHost: a\r\n\r\n`);
    this.sockets.push(socket);
  }
}

const openFilesOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;

it('900 polls leave three workers that may open 512 files able to accept', async () => {
  const cluster = await ClusterProcess.start({
    options: { workers: 3 },
    env: {
      ...behaviour('socket-io'),
      TEST_SOCKET_IO: JSON.stringify({ pingInterval: 120_000 }),
      XDG_RUNTIME_DIR: temporaryDirectory(),
    },
    within: ['prlimit', `--nofile=${OPEN_FILES}:${OPEN_FILES}`],
  });
  const pids = cluster.workerPids;
  const sids: string[] = [];
  while (sids.length < POLLS) {
    const begun = Array.from({ length: 50 }, () => request(cluster.url, PATH));
    for (const { body } of await Promise.all(begun)) {
      sids.push((JSON.parse(body.slice(1)) as { sid: string }).sid);
    }
  }
  const polls = new Polls();
  onTestFinished(() => polls.sockets.forEach((socket) => socket.destroy()));
  let most = 0;
  for (const [count, sid] of sids.entries()) {
    polls.begin(cluster.url, sid);
    if (count % 30 > 0) continue;
    await request(cluster.url, '/hello');
    most = Math.max(most, ...pids.map(openFilesOf));
  }
  await eventually(
    'no more than they have room for',
    () => (most = Math.max(most, ...pids.map(openFilesOf))),
    () => polls.ended > 0,
  );

  await eventually(
    'a new connection served beside them',
    async () => (await request(cluster.url, '/hello')).outcome,
    (outcome) => outcome === 'ok',
  );
  // 128 are left to the rest of the process.
  expect(most).toBeLessThan(OPEN_FILES - 32);
  expect(polls.waiting).toBeGreaterThan(100);
  const messages = cluster.all('warning').map(({ message }) => message);
  expect(messages.join('\n')).toContain('turns connections away:');
  for (const socket of polls.sockets) socket.destroy();
  await eventually(
    'the descriptors of ended polls free in all workers',
    () => Math.max(...pids.map(openFilesOf)),
    (open) => open < OPEN_FILES / 2,
  );
  expect(cluster.workerPids).toEqual(pids);
});
