import { cpSync, existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { type CommandResult, npmEnvironment, runCommand } from '../support/run-command.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const root = join(import.meta.dirname, '../..');
const dist = join(root, 'docs/.vitepress/dist');
const packages = join(root, 'docs/node_modules');

const filesOf = (folder: string) => readdirSync(folder, { recursive: true, encoding: 'utf8' });

/** The part of MiniSearch that the search box of the site uses. */
interface MiniSearch {
  search(query: string): { readonly id: string }[];
}

/** The site's own settings of MiniSearch. */
interface SearchSettings {
  readonly options: object;
  readonly searchOptions: object;
}

/** The index of the built site, loaded as its search box does. */
async function searchBox(): Promise<MiniSearch> {
  const file = filesOf(dist).find((path) => path.includes('@localSearchIndexroot.'))!;
  const { default: index } = (await import(pathToFileURL(join(dist, file)).href)) as {
    default: string;
  };
  const { default: config } = (await import(
    pathToFileURL(join(root, 'docs/.vitepress/config.mjs')).href
  )) as { default: { themeConfig: { search: { options: { miniSearch: SearchSettings } } } } };
  const { options, searchOptions } = config.themeConfig.search.options.miniSearch;
  const MiniSearch = createRequire(join(packages, 'vitepress/package.json'))('minisearch') as {
    loadJSON(index: string, options: object): MiniSearch;
  };
  return MiniSearch.loadJSON(index, {
    fields: ['title', 'titles', 'text'],
    storeFields: ['title', 'titles'],
    searchOptions: { prefix: true, boost: { title: 4, text: 2, titles: 1 }, ...searchOptions },
    ...options,
  });
}

/** Links of the built pages that lead to no file, or to no heading of it. */
function deadLinks(): string[] {
  const pages = new Map(
    filesOf(dist)
      .filter((path) => path.endsWith('.html') && path !== '404.html')
      .map((page) => [page, readFileSync(join(dist, page), 'utf8')]),
  );
  const dead = [...pages].flatMap(([page, html]) =>
    [...html.matchAll(/<a\b[^>]*? href="([^"]*)"/g)]
      .map(([, href]) => href!)
      .filter((href) => {
        const url = new URL(href, `http://site/${page}`);
        if (url.host !== 'site') return false;
        const path = decodeURIComponent(url.pathname.slice(1)).replace(/(^|\/)$/, '$1index.html');
        const target = pages.get(path);
        if (target === undefined) return !existsSync(join(dist, path));
        const id = decodeURIComponent(url.hash.slice(1));
        return id !== '' && !target.includes(` id="${id}"`);
      })
      .map((href) => `${page}: ${href}`),
  );
  return [...new Set(dead)];
}

describe('the site of the documentation', () => {
  let built: CommandResult;

  beforeAll(async () => {
    expect(existsSync(packages), 'node test/bench/install.mjs docs').toBe(true);
    built = await runCommand('npm', ['run', 'docs:build', '--prefix', 'docs'], {
      cwd: root,
      env: npmEnvironment(),
      timeoutMs: 200_000,
    });
  });

  it('is built', () => {
    expect(built, built.stdout + built.stderr).toMatchObject({ code: 0 });
  });

  it('has no link that leads nowhere', () => {
    expect(deadLinks()).toEqual([]);
  });

  it.each([
    ['EADDRINUSE', '/docs/incidents.html#the-port-is-in-use'],
    ['502', '/docs/troubleshooting.html#clients-get-errors'],
    ['CLUSTER_ADMIN_PORT', '/docs/reference/options.html#environment'],
  ])('finds %s with the search box', async (query, page) => {
    const found = (await searchBox()).search(query).map(({ id }) => id);
    expect(found.slice(0, 5)).toContain(page);
  });

  it('is not built with a dead link', async () => {
    const copy = temporaryDirectory();
    cpSync(join(root, 'docs/.vitepress'), join(copy, 'docs/.vitepress'), {
      recursive: true,
      filter: (path) => !/\.vitepress\/(cache|dist)/.test(path),
    });
    symlinkSync(packages, join(copy, 'docs/node_modules'));
    writeFileSync(join(copy, 'docs/page.md'), '# Page\n\n[Nothing](nowhere.md)\n');
    const build = [join(packages, 'vitepress/bin/vitepress.js'), 'build', '.'];
    const { code, stdout, stderr } = await runCommand(process.execPath, build, {
      cwd: join(copy, 'docs'),
      env: { ...npmEnvironment(), NO_COLOR: '1' },
    });
    expect(stdout + stderr).toContain('Found dead link ./nowhere in file docs/page.md');
    expect(code).toBe(1);
  });
});
