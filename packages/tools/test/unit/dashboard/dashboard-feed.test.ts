import { afterEach, describe, expect, it } from 'vitest';
import { changesBetween } from '../../../../src/tools/dashboard/changes-between.js';
import { ClusterFeed, type FeedSettings } from '../../../../src/tools/dashboard/cluster-feed.js';
import { COLUMNS, History, MAX_LOG, MAX_ROWS } from '../../../../src/tools/dashboard/history.js';
import { NOTHING } from '../../../../src/tools/dashboard/metrics-source.js';
import { MAX_UNREAD_BYTES, Viewers } from '../../../../src/tools/dashboard/viewers.js';
import type { ClusterStatus } from '../../../../src/control/cluster-status.js';
import { eventually } from '../../../support/eventually.js';
import { FakeControlClient, STATUS } from '../../support/fake-control-client.js';

const ends: (() => void)[] = [];

afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** A feed that finds these clusters one after the other. */
function follow(clients: readonly FakeControlClient[], settings: Partial<FeedSettings> = {}) {
  const left = [...clients];
  const feed = new ClusterFeed({
    connect: async () => {
      const next = left.shift();
      if (next === undefined) throw new Error('nobody is there');
      return next;
    },
    readOnly: false,
    metrics: false,
    pollMs: 1,
    ...settings,
  });
  const end = new AbortController();
  const running = feed.run(end.signal);
  ends.push(() => {
    end.abort();
    void running;
  });
  const becomes = (state: string) =>
    eventually(
      state,
      () => feed.link,
      (link) => link.state === state,
    );
  return { feed, becomes };
}

/** A status in which slots have answered so many requests; a slot may be there twice. */
function counting(...workers: (readonly [slot: number, requests: number])[]): ClusterStatus {
  const all = workers.map(([slot, requestsTotal]) => ({
    slot,
    requestsTotal,
    eventLoopUtilization: slot === 0 ? 0.5 : 1,
    residentMemoryBytes: null,
  }));
  return { ...STATUS, cluster: { ...STATUS.cluster, workers: all as never } };
}

/** The history with a clock of its own, and a column of it by name. */
function historyAt() {
  const clock = { ms: 1_000_000 };
  const history = new History(() => clock.ms);
  const column = (name: (typeof COLUMNS)[number]) =>
    history.rows.map((row) => row[COLUMNS.indexOf(name)]);
  const add = (status: ClusterStatus, seconds = 1) => {
    clock.ms += seconds * 1_000;
    return history.add(status, NOTHING);
  };
  return { history, column, add };
}

describe('the history of the dashboard', () => {
  it('keeps 15 minutes, and a number of short lines', () => {
    const { history, add, column } = historyAt();

    for (let i = 0; i < 2 * MAX_ROWS; i += 1) add(counting([0, i]));
    for (let i = 0; i < MAX_LOG; i += 1) history.addChanges(of(ready(1)), of(ready(2)));

    expect(history.rows).toHaveLength(MAX_ROWS);
    expect(column('at').at(-1)! - column('at')[0]!).toBe(MAX_ROWS - 1);
    expect(history.log).toHaveLength(MAX_LOG);
  });

  it('counts the requests of a slot once, and none that it had before', () => {
    const { column, add } = historyAt();

    add(counting([0, 100]));
    add(counting([0, 150], [1, 1_000]));
    add(counting([0, 150], [0, 150], [1, 1_010]), 0.5);

    expect(column('requests')).toEqual([null, 50, 40]);
  });

  it('shows no requests below zero where another primary counts anew', () => {
    const { history, column, add } = historyAt();

    add(counting([0, 100]));
    history.restart();
    add(counting([0, 3]));
    add(counting([0, 5]));

    expect(column('requests')).toEqual([null, null, 2]);
  });

  it('leaves unknown what nobody has measured', () => {
    const { column, add } = historyAt();

    add(counting([0, 1], [1, 1]));

    expect(column('residentBytes')).toEqual([null]);
    expect(column('p99Ms')).toEqual([null]);
    expect(column('utilizationMean')).toEqual([0.75]);
    expect(column('utilizationWorst')).toEqual([1]);
  });

  it('breaks its lines where nothing was heard, and goes forward when the clock does not', () => {
    const { column, add } = historyAt();

    add(counting([0, 1]));
    add(counting([0, 1]), 60);
    add(counting([0, 1]), -30);

    expect(column('ready')).toEqual([2, null, 2, 2]);
    expect(column('at')).toEqual(column('at').toSorted((a, b) => a! - b!));
    expect(new Set(column('at')).size).toBe(4);
  });
});

describe('the viewers of the dashboard', () => {
  it('are dropped where they do not read, and no others', () => {
    const viewers = new Viewers();
    const slow = viewers.open('');
    const quick = viewers.open('').on('data', () => {});
    const text = 'x'.repeat(MAX_UNREAD_BYTES / 4);

    for (let i = 0; i < 5; i += 1) {
      viewers.tell(text);
      quick.read();
    }

    expect(slow.destroyed).toBe(true);
    expect(quick.destroyed).toBe(false);
  });

  it('are so many at once, and leave nothing behind', async () => {
    const viewers = new Viewers();
    const open = Array.from({ length: 16 }, () => viewers.open(''));

    expect(() => viewers.open('')).toThrow('open 16 times');
    for (const viewer of open) viewer.destroy();
    await eventually(
      'nobody',
      () => viewers.size,
      (size) => size === 0,
    );
  });
});

/** A worker in slot 0. */
const ready = (pid: number, more: object = {}) => ({
  slot: 0,
  generation: 1,
  pid,
  state: 'ready',
  restarts: 0,
  lastExit: null,
  ...more,
});
const of = (worker: object, cluster: object = {}): ClusterStatus => ({
  ...STATUS,
  cluster: { ...STATUS.cluster, ...cluster, workers: [worker] as never },
});

describe('the events of the dashboard', () => {
  const told = (before: ClusterStatus | undefined, now: ClusterStatus) =>
    changesBetween(before, now, '').map(({ level, text }) => `${level} ${text}`);

  it('are the starts, the states and the ends of workers', () => {
    const starting = ready(2, { state: 'starting', restarts: 1, lastExit: { cause: 'killed' } });
    expect(told(of(ready(1)), of(starting))).toEqual([
      'error worker=0 gen=1 pid=1 ended (cause=killed)',
      'info worker=0 gen=1 pid=2 is starting',
    ]);
    expect(told(of(starting), of({ ...starting, state: 'ready' }))).toEqual([
      'info worker=0 gen=1 pid=2 is ready',
    ]);
    const reloaded = ready(3, { generation: 2, lastExit: { cause: 'reload' } });
    expect(told(of(ready(2)), of(reloaded))).toEqual([
      'info worker=0 gen=1 pid=2 ended (cause=reload)',
      'info worker=0 gen=2 pid=3 is ready',
    ]);
  });

  it('are changes of the cluster', () => {
    const down = of(ready(1), { status: 'down', reason: 'no worker' });
    expect(told(of(ready(1), { status: 'up', reason: undefined }), down)).toEqual([
      'warn the cluster is down: no worker',
    ]);
    expect(told(down, down)).toEqual([]);
    expect(told(undefined, down)).toEqual([]);
  });
});

describe('the feed of the dashboard', () => {
  it('says that a primary is silent, and that it is back', async () => {
    const client = new FakeControlClient();
    const { becomes } = follow([], { connect: async () => client });

    await becomes('connected');
    client.status = new Error('it is blocked or stopped');
    await becomes('gone');
    client.status = STATUS;
    await becomes('connected');
  });

  it('finds the cluster again after its end, and keeps the history', async () => {
    const first = new FakeControlClient();
    const second = new FakeControlClient({ ...STATUS, pid: 4712 });
    const { feed, becomes } = follow([first, second]);

    await becomes('connected');
    first.status = new Error('it has ended');
    await eventually(
      'the second',
      () => feed.introduction(),
      (text) => text.includes('"pid":4712'),
    );

    expect(feed.history.rows.length).toBeGreaterThan(1);
    expect(feed.client).toBe(second);
  });

  it('says why there is no cluster', async () => {
    const { feed } = follow([new FakeControlClient(new Error('it has ended'))]);

    await eventually(
      'the reason',
      () => feed.link.message,
      (message) => message === 'nobody is there',
    );
  });
});
