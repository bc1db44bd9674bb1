import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { behaviour } from '../../../../test/support/behaviour.js';
import { ClusterProcess, stopAll } from '../../../../test/support/cluster-process.js';
import { eventually } from '../../../../test/support/eventually.js';
import { PATIENCE_MS } from '../../../../test/support/patience.js';
import { SteadyLoad } from '../../../../test/support/steady-load.js';
import { describeWith, SYSTEM_ENVIRONMENT } from '../../../../test/support/system-packages.js';
import { startTools } from '../support/tools.js';

describeWith(['chromium'], 'the dashboard in a browser', () => {
  let cluster: ClusterProcess;
  let command: ChildProcess;
  let browser: Browser;
  let load: SteadyLoad;
  let directory: string;
  let url: string;
  let page: Page;
  const complaints: string[] = [];

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'dashboard-'));
    const path = join(directory, 'c.sock');
    cluster = await ClusterProcess.start({
      options: { workers: 2, control: { path }, name: 'shop' },
      env: behaviour('crashes#faults'),
    });
    const args = ['dashboard', '--cluster', path, '--metrics', `${cluster.url}/metrics`];
    command = startTools(args);
    let printed = '';
    command.stdout!.setEncoding('utf8').on('data', (text: string) => (printed += text));
    const link = () => /^http:.*$/m.exec(printed)?.[0];
    url = (await eventually('a link', link, (found) => found !== undefined))!;
    load = new SteadyLoad(cluster.url, ['/hello'], 10);
    browser = await chromium.launch({
      executablePath: '/usr/bin/chromium',
      // The sandbox needs privileges that a container may lack. The browser opens only pages of the tests.
      args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
      env: SYSTEM_ENVIRONMENT as Record<string, string>,
    });
    page = await (await browser.newContext({ viewport: { width: 1_440, height: 900 } })).newPage();
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
    });
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(url);
  });

  afterAll(async () => {
    await load?.stop();
    await browser?.close();
    command?.kill('SIGKILL');
    await stopAll();
    rmSync(directory, { recursive: true, force: true });
  });

  const status = () => page.getByRole('status');
  const rows = () => page.getByRole('region', { name: 'Workers' }).locator('tbody tr');
  /** Presses a button of the page, and then the button in the dialog that opens. */
  const confirm = async (button: string, answer: string) => {
    await page.getByRole('button', { name: button }).click();
    await page.getByRole('dialog').getByRole('button', { name: answer }).click();
  };

  it('shows the workers, their load and latency', async () => {
    await rows().nth(1).waitFor();
    await page.getByText(/^[1-9][\d.]*\s*a second$/).waitFor();
    await page.getByRole('img', { name: /^Latency: p99 [\d.]+ ms/ }).waitFor();

    expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('shop');
  });

  it('shows a kill, its cause and the new worker', async () => {
    const pid = cluster.workerPids[0]!;
    process.kill(pid, 'SIGKILL');

    await page.getByRole('log').getByText(`pid=${pid} ended (cause=killed)`).waitFor();
    await page.getByRole('row', { name: 'killed 1' }).waitFor();
    await rows().first().getByText('ready').waitFor();
  });

  it('has its history again after it was loaded anew, and no token in the address bar', async () => {
    expect(new URL(url).hash).toContain('#token=');
    expect(page.url()).toBe(new URL('/', url).href);
    await page.reload();

    await page.getByRole('log').getByText('ended').first().waitFor();
    await page.getByRole('img', { name: /^Latency: p99 [\d.]+ ms/ }).waitFor();
  });

  it('scales, reloads and restarts, each after a question', async () => {
    await page.getByRole('button', { name: 'Scale' }).click();
    await page.getByRole('spinbutton', { name: 'Workers' }).fill('3');
    await page.keyboard.press('Enter');
    await status().getByText('scaled to 3 workers').waitFor();
    await rows().nth(2).waitFor();

    await page.getByRole('button', { name: 'Reload' }).click();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(cluster.all('reload-started')).toEqual([]);
    await confirm('Reload', 'Reload');
    await status().getByText('reload completed').waitFor();

    // The page shows the old workers until they have stopped.
    await eventually(
      'a row for each',
      () => rows().count(),
      (count) => count === 3,
    );
    await confirm('Restart worker 2', 'Restart');
    await status().getByText('restart of worker 2 completed').waitFor();
  });

  it('names the function that blocks', async () => {
    const blocking = new SteadyLoad(cluster.url, ['/faults/busy'], 3);
    await page.getByRole('button', { name: 'Profile for 20 s' }).click();
    await status().getByText('Profiling all workers for 20 s').waitFor();
    await page.getByRole('row', { name: /crashes\.mjs/ }).waitFor();
    await blocking.stop();
  });

  it('says that a primary is silent, and goes on when it is back', async () => {
    cluster.kill('SIGSTOP');
    await page.getByRole('alert').getByText('no answer within 1000 ms').waitFor();
    expect(await page.getByRole('button', { name: 'Reload' }).isDisabled()).toBe(true);

    cluster.kill('SIGCONT');
    await page.getByRole('alert').getByText('Not live').waitFor({ state: 'detached' });
  });

  it('shows one line without the token, and the cluster when it has it', async () => {
    const other = await (await browser.newContext()).newPage();
    await other.goto(new URL('/', url).href);
    await other.getByText('Open the URL printed by the dashboard command.').waitFor();
    expect(await other.getByRole('button').count()).toBe(0);

    await other.goto(url);
    await other.getByRole('heading', { name: 'shop' }).waitFor();
    await other.close();
  });

  it('breaks no rule of its own policy, and no other', () => {
    expect(complaints).toEqual([]);
  });

  it('says that the cluster has ended', async () => {
    await confirm('Stop', 'Stop the cluster');
    await status().getByText('stopped').waitFor();
    await page.getByRole('alert').getByText('Not live').waitFor();
    expect((await cluster.exited()).code).toBe(0);
  });
});
