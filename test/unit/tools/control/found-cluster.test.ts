import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { temporaryDirectory } from '../../../support/temporary-directory.js';
import { commandLine } from '../../support/command-line-here.js';
import { STATUS } from '../../support/fake-control-client.js';

let runtime: string;

beforeEach(() => {
  runtime = temporaryDirectory();
  mkdirSync(join(runtime, 'nestjs-cluster'), { mode: 0o700 });
  vi.stubEnv('XDG_RUNTIME_DIR', runtime);
  vi.stubEnv('TMPDIR', runtime);
  onTestFinished(() => void vi.unstubAllEnvs());
});

/** A control socket of a cluster that shows this status. */
async function running(name: string, pid: number, status: object = {}): Promise<void> {
  const server = http.createServer((_request, response) => {
    response.end(JSON.stringify({ ...STATUS, name, pid, ...status }));
  });
  const path = join(runtime, 'nestjs-cluster', `${name}.${pid}.sock`);
  await once(server.listen(path), 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
}

/** Commands run in a folder of an app of this name. */
function inAppOf(name: string): void {
  const app = temporaryDirectory();
  const folder = join(app, 'src', 'cats');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(app, 'package.json'), JSON.stringify({ name }));
  const spy = vi.spyOn(process, 'cwd').mockReturnValue(folder);
  onTestFinished(() => spy.mockRestore());
}

describe('a command without --cluster, where several clusters run', () => {
  it('takes the one of the app in whose directory it runs, and says so', async () => {
    await running('acme-shop', 4711);
    await running('billing', 4712);
    inAppOf('@acme/shop');

    const { code, stdout, stderr } = await commandLine('status');

    expect(code).toBe(0);
    expect(stdout).toContain('acme-shop (primary pid 4711,');
    expect(stderr).toBe(
      'using acme-shop (pid 4711), the app of this directory; --cluster chooses another\n',
    );
  });

  it.each([
    ['another app', 'orders'],
    ['an app that runs twice', 'billing'],
  ])('refuses to choose in the directory of %s', async (_what, name) => {
    await running('shop', 4711);
    await running('billing', 4712);
    await running('billing', 4713);
    inAppOf(name);

    const { code, stdout, stderr } = await commandLine('status');

    expect([code, stdout]).toEqual([64, '']);
    expect(stderr).toContain('billing (pid 4713)');
    expect(stderr).toContain('choose by --cluster');
  });

  it('says nothing where there is nothing to choose, or a choice was made', async () => {
    await running('shop', 4711);
    inAppOf('shop');
    expect(await commandLine('status')).toMatchObject({ code: 0, stderr: '' });

    await running('billing', 4712);
    const chosen = await commandLine('status', '-c', 'billing');
    expect(chosen).toMatchObject({ code: 0, stderr: '' });
    expect(chosen.stdout).toContain('billing (primary pid 4712,');
  });
});

describe('ps', () => {
  it('shows an address only if something listens there', async () => {
    const options = { port: 3000, host: null };
    await running('shop', 4711, { options });
    await running('mails', 4712, { options, cluster: { ...STATUS.cluster, balancing: 'none' } });

    const { stdout } = await commandLine('ps');

    expect(stdout).toMatch(/^shop .* \*:3000 +24/m);
    expect(stdout).toMatch(/^mails .* - +24/m);
  });
});
