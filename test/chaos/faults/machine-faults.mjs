import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { descriptorsOf, signal } from '../process-table.mjs';
import { reloadInVain } from './release-faults.mjs';

const LOG_LINES = 50;
const SILENT_CONNECTIONS = 50;
const CLOCK_JUMPS_SECONDS = [-86_400, -3_600, -30, 30, 3_600, 86_400];

/** What is done to the machine, or to what the primary has of it. */
export const MACHINE_FAULTS = [
  {
    name: 'disk',
    needs: ['root'],
    parameters: (random) => ({ forMs: random.between(1_000, 2_000) }),
    /** All of them write, and what they write is lost. */
    async inject(run, { forMs }) {
      run.log.fillDisk();
      run.undoLater(() => run.log.emptyDisk());
      for (let asked = 0; asked < 4; asked++) await run.cluster.app(run.fault('log', LOG_LINES));
      // The primary has something to say too.
      await reloadInVain(run, 'throws');
      await delay(forMs);
      run.undoNow();
      const written = run.log.lines.length;
      await run.cluster.app(run.fault('log', 1));
      await run.eventually('the log is written again', () => run.log.lines.length > written);
    },
  },
  {
    name: 'descriptors',
    needs: ['root'],
    parameters: (random) => ({
      who: random.of(['worker', 'workers', 'primary']),
      left: random.between(0, 3),
      share: random.ratio(),
      forMs: random.between(1_000, 3_000),
    }),
    /** Only connections that cannot be accepted may be lost. */
    async inject(run, { who, left, share, forMs }) {
      const pids = {
        worker: () => run.pickWorkers(share, 1),
        workers: () => run.cluster.workerPids,
        primary: () => [run.cluster.pid],
      }[who]();
      const end = run.shortage({ primary: who === 'primary' });
      const limits = pids.map(limitOf);
      for (const pid of pids) limit(pid, limitThatLeaves(pid, left));
      run.undoLater(() => {
        pids.forEach((pid, index) => limit(pid, limits[index]));
        end();
      });
      // Open connections use up the descriptors that are left.
      await flood(run, SILENT_CONNECTIONS);
      await delay(forMs);
      run.undoNow();
    },
  },
  {
    name: 'flood',
    parameters: (random) => ({
      connections: random.between(100, 400),
      forMs: random.between(500, 2_000),
    }),
    async inject(run, { connections, forMs }) {
      await flood(run, connections);
      await delay(forMs);
      run.undoNow();
    },
  },
  {
    name: 'clock',
    needs: ['faketime'],
    parameters: (random) => ({ bySeconds: random.of(CLOCK_JUMPS_SECONDS) }),
    /** The wall clock jumps, and jumps back. */
    async inject(run, { bySeconds }) {
      run.cluster.setClock(bySeconds);
      run.undoLater(() => run.cluster.setClock(0));
      await delay(2_500);
      run.undoNow();
      await delay(1_500);
    },
  },
  {
    name: 'primary',
    parameters: (random) => ({ forMs: random.between(500, 3_000) }),
    async inject(run, { forMs }) {
      await freeze(run, () => [run.cluster.pid], forMs);
    },
  },
  {
    name: 'group',
    parameters: (random) => ({ forMs: random.between(1_000, 7_000) }),
    /** As a suspended machine, or a shell's Ctrl-Z: longer than a worker may hang, or not. */
    async inject(run, { forMs }) {
      await freeze(run, () => [run.cluster.pid, ...run.cluster.workerPids], forMs);
    },
  },
];

/** Clients that connect and say nothing, until the fault is undone. */
async function flood(run, connections) {
  const sockets = Array.from({ length: connections }, () =>
    net.connect(run.cluster.port, '127.0.0.1'),
  );
  run.undoLater(() => sockets.forEach((socket) => socket.destroy()));
  for (const socket of sockets) socket.on('error', () => {}); // not counted as losses
  await Promise.all(sockets.map((socket) => once(socket, 'connect').catch(() => {})));
}

async function freeze(run, pidsOf, forMs) {
  const pids = pidsOf();
  const end = run.silence();
  for (const pid of pids) signal(pid, 'SIGSTOP');
  run.undoLater(() => {
    for (const pid of pids.toReversed()) signal(pid, 'SIGCONT');
    end();
  });
  await delay(forMs);
  run.undoNow();
}

/** The limit is one of numbers: what lies between those in use counts too. */
function limitThatLeaves(pid, left) {
  const used = new Set(descriptorsOf(pid));
  let number = 0;
  for (let free = 0; free < left || used.has(number); number++) if (!used.has(number)) free += 1;
  return number;
}

function limitOf(pid) {
  return /^Max open files\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'utf8'))[1];
}

function limit(pid, descriptors) {
  try {
    // The soft limit alone: it can be raised again.
    execFileSync('prlimit', ['--pid', pid, `--nofile=${descriptors}:`], { stdio: 'pipe' });
  } catch (error) {
    if (signal(pid, 0)) throw error; // otherwise the process has ended
  }
}
