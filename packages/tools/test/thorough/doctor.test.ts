import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { FINDING_NAMES } from '../../src/contract/options/index.js';
import { ClusterProcess, NODE, PROGRAMS, stopAll } from '../support/cluster-process.js';
import { MAIN } from '../support/command-line.js';
import { doctor, examined, filesBelow, PLANTED } from '../support/doctor.js';
import { eventually } from '../support/eventually.js';
import { freePorts, holdPort } from '../support/free-ports.js';
import { plainEnvironment } from '../support/run-command.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const root = join(import.meta.dirname, '../..');

const DATABASE_URL = 'mysql://user@127.0.0.1/app?connection_limit=80';

/** An empty environment. */
const NOTHING: Readonly<Record<string, string>> = {};

/** Pids of processes that have this in their environment, zombies left out. */
function withMarker(marker: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, 'utf8').includes(marker);
    } catch {
      return false; // the process has ended
    }
  });
}

describe('nestjs-cluster doctor', () => {
  it('finds everything that does not fit several workers, and says where', async () => {
    const { code, report } = await examined([PLANTED], {
      DATABASE_URL,
      HELD_BYTES: String(Math.ceil(totalmem() / 256)),
      TEST_OPTIONS: JSON.stringify({ workers: 256 }),
    });

    const app = 'test/fixtures/planted/app.mjs';
    const main = 'test/fixtures/planted/main.mjs';
    const places = report.findings.map(({ name, where }) => [name, where.replace(/:\d+$/, '')]);
    expect(places).toEqual([
      ['shutdown-hooks', app],
      ['signal-listener', app],
      ['memory', expect.stringMatching(/^(this machine|the control group of the process)$/)],
      ['scheduled-jobs', 'Reports.nightly() (ReportsModule), Reports.often() (ReportsModule)'],
      ['throttler', 'ThrottlerModule'],
      ['cache', 'CacheModule in AppModule'],
      ['socket-io-adapter', 'ChatGateway (ChatModule)'],
      ['socket-io-polling', 'ChatGateway (ChatModule)'],
      ['in-process-events', 'PUB_SUB (ChatModule)'],
      ['in-process-events', 'ProbesController.visits (AppModule)'],
      ['schema-synchronization', 'DataSource (DatabaseModule)'],
      ['sessions', 'MemoryStore of express-session'],
      ['database-pool', 'DataSource (DatabaseModule)'],
      ['database-pool', 'PrismaService (DatabaseModule)'],
      ['database-pool', 'KNEX (DatabaseModule)'],
      ['database-pool', 'DatabaseConnection (DatabaseModule)'],
      ['own-health', 'ProbesController.health() (AppModule)'],
      ['own-metrics', 'ProbesController.metrics() (AppModule)'],
      ['keep-alive', `the HTTP server of ${main}`],
      ['force-close-connections', `NestFactory.create() of ${main}`],
    ]);
    expect(code).toBe(1);
    // This app has no @CpuBound() methods, and its worker gives no other warning.
    const names = report.findings.map(({ name }) => name);
    expect(FINDING_NAMES.filter((name) => !names.includes(name))).toEqual([
      'web-socket-broadcast',
      'self-restart',
      'cpu-bound-inline',
      'cpu-bound-threads',
      'warning',
    ]);
  });

  it.each([
    // A hub is found there, too.
    { adapter: 'express', program: PROGRAMS.installedSample, shared: '1' },
    { adapter: 'fastify', program: PROGRAMS.sample, shared: '' },
  ])('finds nothing in the sample app on $adapter', async ({ adapter, program, shared }) => {
    // As `npm run start:prod` of Nest names it.
    const main = program.replace(/\.js$/, '');
    const { code, stdout, stderr } = await doctor([main], {
      ADAPTER: adapter,
      SAMPLE_SHARED: shared,
    });

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/sample-app\/dist\/main\.js with \d+ workers: 0 problems, 0 notes\n$/);
  });

  it('prints a table, with the remedy of each finding', async () => {
    const { code, stdout } = await doctor(
      [PLANTED, '--workers', '3', '--max-connections', '199', '--proxy-keep-alive', '4'],
      { DATABASE_URL },
    );

    expect(code).toBe(1);
    expect(stdout).toMatch(
      /^problem {2}cache +CacheModule in AppModule\n +every worker .*\n +-> give .*\n +see docs\/shared-state\.md\n\n/m,
    );
    expect(stdout).toMatch(/main\.mjs with 3 workers: \d+ problems, 2 notes\n$/);
    // 4 × 50 connections are one too many; 4 s are less than the 5 of Node.
    expect(stdout).toContain('are 200; the database allows 199');
    expect(stdout).not.toContain('keep-alive');
  });

  it('tells no more of what the app has it ignore', async () => {
    const ignore = ['warning'];
    const { code, report } = await examined([PROGRAMS.app], {
      TEST_APP: behaviour('listens'),
      TEST_OPTIONS: JSON.stringify({ warnings: { ignore } }),
    });

    expect({ code, ...report }).toMatchObject({ code: 0, findings: [], ignored: ignore });
  });

  it('tells what a worker warns of', async () => {
    const { code, report } = await examined([PROGRAMS.app], {
      TEST_APP: behaviour('listens'),
    });

    expect(code).toBe(1);
    expect(report.findings).toMatchObject([
      {
        name: 'warning',
        where: 'test/fixtures/app.mjs',
        problem: expect.stringContaining('createApp() has already called listen()'),
        remedy: 'leave the call out',
      },
    ]);
  });

  it('notes once what a package of the app calls', async () => {
    const { code, report } = await examined([PROGRAMS.app], {
      TEST_APP: behaviour('package-hooks'),
    });

    expect(report.findings).toMatchObject([
      { name: 'shutdown-hooks', level: 'note', where: '/app/node_modules/framework/index.js:1' },
    ]);
    expect(code).toBe(0);
  });

  it('leaves nothing running and nothing written, and needs no address of the app', async () => {
    const port = await freePorts(2);
    for (const each of [port, port + 1]) {
      const holder = await holdPort(each);
      onTestFinished(() => void holder.close());
    }
    const marker = randomUUID();
    const project = dirname(PLANTED);
    const temporary = temporaryDirectory();
    const before = filesBelow(project);

    const { code } = await doctor(
      ['main.mjs'],
      {
        MARKER: marker,
        TMPDIR: temporary,
        HELPER: '1',
        TEST_OPTIONS: JSON.stringify({
          port,
          host: '127.0.0.1',
          admin: { port: port + 1 },
          // For clients, of which there are none.
          shutdown: { lameDuckMs: 600_000 },
        }),
      },
      project,
    );

    expect(code).toBe(1);
    expect(withMarker(marker)).toEqual([]);
    expect(filesBelow(project)).toEqual(before);
    expect(filesBelow(temporary)).toEqual([]);
  });

  it('ends the app with Ctrl-C', async () => {
    const marker = randomUUID();
    const child = spawn(NODE, [MAIN, 'doctor', PROGRAMS.app], {
      cwd: root,
      env: {
        ...plainEnvironment(),
        MARKER: marker,
        TEST_APP: behaviour('never-ready'),
        TEST_SLOTS: '0',
      },
      stdio: 'ignore',
    });
    const exit = once(child, 'exit');
    onTestFinished(() => void child.kill('SIGKILL'));
    // The command, what leads its group, the worker.
    await eventually(
      'three processes',
      async () => withMarker(marker).length,
      (processes) => processes === 3,
    );

    child.kill('SIGINT');

    expect((await exit)[0]).toBe(130);
    expect(withMarker(marker)).toEqual([]);
  });
});

describe('an app that cannot be looked at', () => {
  it.each([
    {
      what: 'does not start',
      program: PROGRAMS.app,
      env: { TEST_APP: behaviour('init-rejects') },
      says: ['error: the app does not start: ', '; the last it wrote:\n  | '],
    },
    {
      what: 'ends by itself',
      program: fixture('nan.mjs'),
      env: NOTHING,
      says: ['error: the app ended before it was ready (exit code 78); ', 'readyTimeoutMs: NaN'],
    },
    {
      what: 'does not call bootstrap()',
      program: fixture('plain.mjs'),
      env: NOTHING,
      says: ['error: the app listens and has not called bootstrap() of nestjs-cluster; '],
    },
    {
      what: 'has @CpuBound() methods that no thread can run',
      program: PROGRAMS.app,
      env: { TEST_APP: behaviour('offload-undeclared') },
      says: [
        'error: the app does not start: @CpuBound() cannot work here: ',
        'the import did not declare the class Hidden',
      ],
    },
    {
      what: 'is TypeScript that nothing compiles',
      program: fixture('cpu-bound-app/main.ts'),
      env: NOTHING,
      says: ['; the file is TypeScript: give the built one, or', '; the last it wrote:\n  | '],
    },
  ])('is told with the last that it wrote where it $what', async ({ program, env, says }) => {
    const { code, stdout, stderr } = await doctor([program], env);

    expect({ code, stdout }, stderr).toEqual({ code: 70, stdout: '' });
    for (const each of says) expect(stderr).toContain(each);
  });
});

describe('the start of a cluster', () => {
  afterEach(stopAll);

  const warnings = (cluster: ClusterProcess): string[] =>
    cluster
      .all('warning')
      .map(({ message }) => message)
      .filter((message) => message.includes('warnings: { ignore:'));

  const NAMES = [
    'scheduled-jobs',
    'throttler',
    'cache',
    'socket-io-adapter',
    'socket-io-polling',
    'in-process-events', // a PubSub
    'in-process-events', // behind @Sse()
    'schema-synchronization',
  ];

  // That nothing is said where warnings is false, or of one worker: unit/bootstrap/examination.
  it('warns of each finding that is cheap to see, once', async () => {
    const cluster = await ClusterProcess.start({ program: PLANTED, options: { workers: 2 } });
    await cluster.until('warnings', () => warnings(cluster).length >= NAMES.length);
    cluster.kill('SIGTERM');
    await cluster.exited();

    const silenced = warnings(cluster).map((each) => /ignore: \['([\w-]+)'\]/.exec(each)![1]);
    expect(silenced).toEqual(NAMES);
    expect(warnings(cluster)[0]).toContain(
      'scheduled jobs run in every worker, so 2 times each: Reports.nightly() (ReportsModule), Reports.often() (ReportsModule); import ClusterScheduleModule',
    );
  });
});

function fixture(name: string): string {
  return join(root, 'test/fixtures', name);
}

function behaviour(name: string): string {
  return fixture(`behaviours/${name}.mjs`);
}
