import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { pathOfBehaviour } from '../../../../test/support/behaviour.js';
import { PROGRAMS } from '../../../../test/support/cluster-process.js';
import { filesBelow } from '../../../../test/support/files-below.js';
import { freePorts, holdPort } from '../../../../test/support/free-ports.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import type { DoctorReport } from '../../src/doctor/report.js';
import { tools } from '../support/tools.js';

const root = join(import.meta.dirname, '../../../..');

/** An app with one of each problem that the doctor looks for. */
const PLANTED = join(import.meta.dirname, '../fixtures/planted/main.mjs');

type Environment = Readonly<Record<string, string>>;

function doctor(args: readonly string[], env: Environment = {}, cwd?: string) {
  return tools(['doctor', ...args], { env, ...(cwd !== undefined && { cwd }) });
}

async function examined(args: readonly string[], env: Environment) {
  const result = await doctor([...args, '--json'], env);
  if (result.stdout === '') throw new Error(`exit code ${result.code}: ${result.stderr}`);
  return { ...result, report: JSON.parse(result.stdout) as DoctorReport };
}

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

describe('nestjs-cluster-tools doctor', () => {
  it('finds what does not work in several workers, and says where', async () => {
    const { code, report } = await examined(
      [PLANTED, '--workers', '256', '--max-connections', '199'],
      {
        HELD_BYTES: String(Math.ceil(totalmem() / 256)),
      },
    );

    const places = report.findings.map(({ name, where }) => [name, where.replace(/:\d+$/, '')]);
    expect(places).toEqual([
      ['scheduled-jobs', 'Reports.nightly() (ReportsModule), Reports.often() (ReportsModule)'],
      ['throttler', 'ThrottlerModule'],
      ['cache', 'CacheModule'],
      ['socket-io', 'ChatGateway (ChatModule)'],
      ['memory', 'this machine or its control group'],
      ['in-process-events', 'PUB_SUB (ChatModule)'],
      ['schema-synchronization', 'DataSource (DatabaseModule)'],
      ['sessions', 'MemoryStore of express-session'],
      ['database-pool', 'DataSource (DatabaseModule)'],
      ['database-pool', 'PrismaService (DatabaseModule)'],
      ['database-pool', 'KNEX (DatabaseModule)'],
      ['database-pool', 'DatabaseConnection (DatabaseModule)'],
      ['own-health', 'ProbesController.health() (AppModule)'],
      ['own-metrics', 'ProbesController.metrics() (AppModule)'],
      ['signal-listener', 'packages/tools/test/fixtures/planted/app.mjs'],
      ['warning', 'packages/tools/test/fixtures/planted/main.mjs'],
    ]);
    expect(report.findings.at(-1)!.problem).toContain(
      'the signal listeners of enableShutdownHooks() were removed',
    );
    expect(report.findings.filter(({ name }) => name === 'database-pool')[0]!.problem).toContain(
      '; the database allows 199',
    );
    expect({ code, workers: report.workers }).toEqual({ code: 1, workers: 256 });
  });

  it.each([
    { adapter: 'express', program: PROGRAMS.installedSample, shared: '1' },
    { adapter: 'fastify', program: PROGRAMS.sample, shared: '' },
  ])('finds nothing in the sample app on $adapter', async ({ adapter, program, shared }) => {
    // As `npm run start:prod` of Nest names it.
    const main = program.replace(/\.js$/, '');
    const env = { ADAPTER: adapter, SAMPLE_SHARED: shared };

    expect(await doctor([main], env)).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(/sample-app\/dist\/main with \d+ workers: 0 findings\n$/),
    });
  });

  it('leaves out findings that the app ignores', async () => {
    const ignore = ['warning'];
    const { code, report } = await examined([PROGRAMS.app], {
      BEHAVE: pathOfBehaviour('crashes#listens'),
      TEST_OPTIONS: JSON.stringify({ warnings: { ignore } }),
    });

    expect({ code, ...report }).toMatchObject({ code: 0, findings: [], ignored: ignore });
  });

  it('leaves nothing running and nothing written, and needs no port of the app', async () => {
    const port = await freePorts(2);
    for (const each of [port, port + 1]) {
      const holder = await holdPort(each);
      onTestFinished(() => void holder.close());
    }
    const marker = randomUUID();
    const project = dirname(PLANTED);
    const temporary = temporaryDirectory();
    const before = filesBelow(project);
    const options = { port, host: '127.0.0.1', admin: { port: port + 1 } };

    const { stdout } = await doctor(
      ['main.mjs'],
      { MARKER: marker, TMPDIR: temporary, HELPER: '1', TEST_OPTIONS: JSON.stringify(options) },
      project,
    );

    expect(stdout).toMatch(/main\.mjs with \d+ workers: \d+ findings\n$/);
    expect(withMarker(marker)).toEqual([]);
    expect(filesBelow(project)).toEqual(before);
    expect(filesBelow(temporary)).toEqual([]);
  });
});

interface Failure {
  readonly what: string;
  readonly program: string;
  readonly env: Readonly<Record<string, string>>;
  readonly says: readonly string[];
}

describe('an app that does not start', () => {
  it.each<Failure>([
    {
      what: 'throws',
      program: PROGRAMS.app,
      env: { BEHAVE: pathOfBehaviour('crashes#initRejects') },
      says: ['error: the app exited with code 1; its last output:\n  | '],
    },
    {
      what: 'has a wrong option',
      program: fixture('nan.mjs'),
      env: {},
      says: ['error: the app exited with code 78; ', 'readyTimeoutMs: NaN'],
    },
    {
      what: 'has @CpuBound() methods that no thread can run',
      program: PROGRAMS.app,
      env: { BEHAVE: pathOfBehaviour('offload-faults#undeclared') },
      says: ['@CpuBound() cannot work here: ', 'the import did not declare the class Hidden'],
    },
  ])('is reported with its last lines if it $what', async ({ program, env, says }) => {
    const { code, stdout, stderr } = await doctor([program], env);

    expect({ code, stdout }, stderr).toEqual({ code: 70, stdout: '' });
    for (const each of says) expect(stderr).toContain(each);
  });
});

function fixture(name: string): string {
  return join(root, 'test/fixtures', name);
}
