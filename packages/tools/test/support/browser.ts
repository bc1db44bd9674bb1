import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { SYSTEM_ENVIRONMENT } from '../../../../test/support/system-packages.js';

/** Chromium of the system, without a window. Close it in the end. */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: '/usr/bin/chromium',
    // Its sandbox needs more than a container may; it sees pages of the tests alone.
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    env: SYSTEM_ENVIRONMENT as Record<string, string>,
  });
}

/** A page of a browser that has visited nothing, and everything that it complained of. */
export async function newPage(
  browser: Browser,
  options: BrowserContextOptions = {},
): Promise<{ readonly page: Page; readonly complaints: string[] }> {
  const page = await (await browser.newContext(options)).newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  return { page, complaints };
}
