import { defineConfig } from 'vitepress';

/** Pages of the sidebar: title, and path below docs/, or from the root with a slash. */
const SECTIONS = {
  Start: [
    ['Overview', 'README'],
    ['Getting started', 'getting-started'],
    ['Decide', 'decide'],
    ['Migrating', 'migrating'],
    ['Development and testing', 'development'],
  ],
  Build: [
    ['CPU-bound methods', 'cpu-bound-methods'],
    ['Scheduled jobs', 'scheduled-jobs'],
    ['WebSockets and microservices', 'websockets-and-microservices'],
    ['Databases and shutdown hooks', 'databases-and-shutdown'],
  ],
  Packages: [
    ['Locks, limits, cache, events', '/packages/shared/README'],
    ['Socket.IO', '/packages/socket.io/README'],
    ['Queues', '/packages/bullmq/README'],
    ['Doctor, advise, tune, dashboard', '/packages/tools/README'],
  ],
  Run: [
    ['Production', 'production'],
    ['systemd', 'systemd'],
    ['Docker', 'docker'],
    ['Kubernetes', 'kubernetes'],
    ['Reload and releases', 'reload-and-releases'],
    ['Sizing', 'sizing'],
    ['Control', 'control'],
    ['Security', 'security'],
    ['Compatibility', 'compatibility'],
  ],
  Watch: [
    ['Incidents', 'incidents'],
    ['Health and metrics', 'observability'],
    ['Logging', 'logging'],
    ['Tracing', 'tracing'],
    ['Profiles', 'profiles'],
  ],
  Understand: [
    ['How it works', 'how-it-works'],
    ['Benchmarks', 'benchmarks'],
  ],
  Reference: [
    ['Options', 'reference/options'],
    ['Messages', 'reference/messages'],
    ['Events, errors, signals', 'reference/events'],
    ['Metrics and fields', 'reference/metrics'],
    ['Replaced methods', 'reference/patched'],
    ['API', 'api/'],
  ],
};

/** A README is the index of its folder. The site has no page of the licence. */
const asPage = (path) =>
  path === 'LICENSE'
    ? 'https://spdx.org/licenses/MIT.html'
    : path.replace(/\bREADME(?:\.md)?(?=#|$)/, 'index.md');

/** The anchor of a heading, as GitHub makes it, so that a link to it works in both places. */
const slugify = (title) =>
  title
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');

export default defineConfig({
  title: 'nestjs-cluster',
  description: 'Run a NestJS app on every core: supervised workers on one shared socket',
  // The pages link to files outside of docs/, as they do in the repository.
  srcDir: '..',
  srcExclude: ['**/node_modules/**', '**/dist/**', 'test/!(bench)/**', 'test/bench/!(results)/**'],
  rewrites: { 'README.md': 'index.md', ':folder(.*)/README.md': ':folder/index.md' },
  cacheDir: '.vitepress/cache',
  outDir: '.vitepress/dist',
  markdown: {
    anchor: { slugify },
    config(md) {
      const normalizeLink = md.normalizeLink.bind(md);
      md.normalizeLink = (url) => normalizeLink(asPage(url));
      // Vite takes a bare name for a package.
      const { html_block: html } = md.renderer.rules;
      md.renderer.rules.html_block = (...args) =>
        html(...args).replace(/\b(src|srcset)="(?=\w[^:"]*")/g, '$1="./');
    },
  },
  vite: {
    plugins: [
      {
        // Pages outside of docs/ have no node_modules of the site above them; the server's bundle has.
        name: 'vue-of-the-site',
        enforce: 'pre',
        resolveId: (id, _importer, { ssr }) =>
          ssr && /^vue(\/server-renderer)?$/.test(id) ? { id, external: true } : undefined,
      },
    ],
  },
  themeConfig: {
    nav: [
      { text: 'Getting started', link: '/docs/getting-started' },
      { text: 'Options', link: '/docs/reference/options' },
      { text: 'Troubleshooting', link: '/docs/troubleshooting' },
      { text: 'API', link: '/docs/api/' },
    ],
    sidebar: Object.entries(SECTIONS).map(([text, pages]) => ({
      text,
      items: pages.map(([title, page]) => ({
        text: title,
        link: `${page.startsWith('/') ? '' : '/docs/'}${asPage(page).replace(/index\.md$/, '')}`,
      })),
    })),
    outline: [2, 3],
    search: {
      provider: 'local',
      options: {
        // The report of the benchmarks has nearly every number, and the change log nearly every word.
        _render: (text, env, md) =>
          /^(test\/|CHANGELOG)/.test(env.relativePath) ? '' : md.render(text, env),
        miniSearch: {
          // CLUSTER_ADMIN_PORT is one word.
          options: { tokenize: (text) => text.split(/\W+/) },
          // Another number is not a misspelt one: 503 for 502.
          searchOptions: { combineWith: 'AND', fuzzy: (term) => (/\d/.test(term) ? false : 0.2) },
        },
      },
    },
  },
});
