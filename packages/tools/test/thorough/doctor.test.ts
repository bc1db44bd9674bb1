import { once } from 'node:events';
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { behaviour } from '../../../../test/support/behaviour.js';
import { PROGRAMS } from '../../../../test/support/cluster-process.js';
import { eventually } from '../../../../test/support/eventually.js';
import { freePorts, holdPort } from '../../../../test/support/free-ports.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import type { DoctorReport } from '../../src/doctor/examine-app.js';
import { startTools, tools } from '../support/tools.js';

/** An app that has everything that the doctor looks for. */
const PLANTED = join(import.meta.dirname, '../fixtures/planted/main.mjs');

const DATABASE_URL = 'mysql://user@127.0.0.1/app?connection_limit=80';

/** Pids of processes that have this in their environment, without zombies. */
function withMarker(marker: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, 'utf8').includes(marker);
    } catch {
      return false; // the process has ended
    }
  });
}

it('finds everything that does not fit several workers, and says where', async () => {
  const { code, stdout, stderr } = await tools(['doctor', PLANTED, '--json'], {
    env: {
      DATABASE_URL,
      HELD_BYTES: String(Math.ceil(totalmem() / 256)),
      TEST_OPTIONS: JSON.stringify({ workers: 256, warnings: { ignore: ['cache'] } }),
    },
  });

  const { findings, ignored } = JSON.parse(stdout || stderr) as DoctorReport;
  const app = 'packages/tools/test/fixtures/planted/app.mjs';
  const main = 'packages/tools/test/fixtures/planted/main.mjs';
  expect(findings.map(({ name, where }) => [name, where.replace(/:\d+$/, '')])).toEqual([
    ['scheduled-jobs', main],
    ['throttler', main],
    ['socket-io', main],
    ['shutdown-hooks', app],
    ['signal-listener', app],
    ['memory', expect.stringMatching(/^(this machine|the control group of the process)$/)],
    ['sessions', 'MemoryStore of express-session'],
    ['database-pool', 'DataSource (AppModule)'],
    ['database-pool', 'PrismaService (AppModule)'],
    ['database-pool', 'KNEX (AppModule)'],
    ['database-pool', 'DatabaseConnection (AppModule)'],
    ['schema-synchronization', 'DataSource (AppModule)'],
    ['own-health', 'ProbesController.health() (AppModule)'],
    ['own-metrics', 'ProbesController.metrics() (AppModule)'],
  ]);
  expect({ code, ignored }).toEqual({ code: 1, ignored: ['cache'] });
});

it('prints each finding with its remedy, leaves nothing running, and needs no port of the app', async () => {
  const port = await freePorts(1);
  const holder = await holdPort(port);
  onTestFinished(() => void holder.close());
  const marker = randomUUID();
  const temporary = temporaryDirectory();

  const { code, stdout } = await tools(
    ['doctor', PLANTED, '--workers', '3', '--max-connections', '199'],
    {
      env: {
        DATABASE_URL,
        MARKER: marker,
        TMPDIR: temporary,
        HELPER: '1',
        TEST_OPTIONS: JSON.stringify({ port, host: '127.0.0.1' }),
      },
    },
  );

  expect(code).toBe(1);
  expect(stdout).toMatch(/^problem {2}cache {2}.*main\.mjs\n {2}every worker .*\n {2}-> npm /m);
  expect(stdout).toMatch(/main\.mjs with 3 workers: \d+ problems, 1 notes\n$/);
  expect(stdout).toContain('are 200; the database allows 199');
  expect(withMarker(marker)).toEqual([]);
  expect(readdirSync(temporary)).toEqual([]);
});

it.each([
  { adapter: 'express', program: PROGRAMS.installedSample, shared: '1' },
  { adapter: 'fastify', program: PROGRAMS.sample, shared: '' },
])('finds nothing in the sample app on $adapter', async ({ adapter, program, shared }) => {
  const env = { ADAPTER: adapter, SAMPLE_SHARED: shared };
  const { code, stdout, stderr } = await tools(['doctor', program.replace(/\.js$/, '')], { env });

  expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/sample-app\/dist\/main\.js with \d+ workers: 0 problems, 0 notes\n$/);
});

it('ends the app with Ctrl-C', async () => {
  const marker = randomUUID();
  const child = startTools(['doctor', PROGRAMS.app], {
    env: { MARKER: marker, TEST_SLOTS: '0', ...behaviour('never-ready') },
  });
  const exit = once(child, 'exit');
  onTestFinished(() => void child.kill('SIGKILL'));
  await eventually(
    'the command and the app',
    async () => withMarker(marker).length,
    (processes) => processes === 2,
  );

  child.kill('SIGINT');

  expect((await exit)[0]).toBe(130);
  expect(withMarker(marker)).toEqual([]);
});

const fixture = (name: string) => join(import.meta.dirname, '../../../../test/fixtures', name);

it.each([
  {
    what: 'does not start',
    program: PROGRAMS.app,
    env: behaviour('init-rejects'),
    says: 'error: the app ended with code 1; the last it wrote:\n  | ',
  },
  {
    what: 'is TypeScript that nothing compiles',
    program: fixture('cpu-bound-app/main.ts'),
    env: {},
    says: '; the file is TypeScript: give the built one, or',
  },
])('shows the last lines of an app that $what', async ({ program, env, says }) => {
  const { code, stdout, stderr } = await tools(['doctor', program], { env });

  expect({ code, stdout }, stderr).toEqual({ code: 1, stdout: '' });
  expect(stderr).toContain(says);
});
