import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import { seal } from '../../src/contract/messages.js';
import { clusterOptions } from '../../src/contract/options/index.js';
import {
  documentedProtocolVersion,
  PACKAGE_READMES,
  readDocument,
  rowsOf,
  sectionOf,
} from '../support/documents.js';

describe('the promise that no request is lost', () => {
  it('names its exceptions, in the README and where they are explained', () => {
    const promise = /^- \*\*No lost requests\.\*\* .*$/m.exec(readDocument('README.md'))![0];
    const page = sectionOf(readDocument('docs/reload-and-releases.md'), 'What is lost');
    expect(promise).toContain('reload-and-releases.md#what-is-lost');
    for (const text of [promise, page]) {
      expect(text).toMatch(/\bPOST\b.*\bidle connection/s);
      expect(text).toContain('killed worker');
    }
  });

  it('is as wide as the drain: the page lists each kind of work that a drain waits for', () => {
    const drained = sectionOf(readDocument('docs/reload-and-releases.md'), 'What drains');
    for (const page of [
      'microservices.md',
      'scheduled-jobs.md',
      '../packages/shared/README.md',
      'websockets.md',
    ]) {
      expect(drained).toContain(`](${page}`);
    }
  });
});

describe('the page of deployment', () => {
  const { lameDuckMs, drainTimeoutMs, killTimeoutMs } = v.parse(clusterOptions, {}).shutdown;
  const stopSeconds = (lameDuckMs + drainTimeoutMs + killTimeoutMs) / 1_000;
  const platforms = rowsOf(
    sectionOf(readDocument('docs/deployment.md'), 'How long a platform waits'),
  ).slice(2);

  it('tells how long each platform waits by default', () => {
    expect(platforms.map(([name]) => name)).toEqual(
      expect.arrayContaining(['systemd', 'Docker', 'Docker Compose', 'Kubernetes', 'pm2']),
    );
  });

  it.each(
    platforms.filter(([name, grace]) => name !== 'any' && Number.parseFloat(grace!) <= stopSeconds),
  )('leads to what has to be set for %s, which waits for %s', (_, __, setting) => {
    const [name] = /(?<=^`)[\w-]+/.exec(setting!)!;
    const pages = ['docker', 'migrating-from-pm2'].map((page) => readDocument(`docs/${page}.md`));
    expect(pages.join()).toContain(name);
  });

  it('has the options for a platform that always waits for 10 s', () => {
    const [, ms] = /`shutdown: \{ drainTimeoutMs: ([\d_]+) \}`/.exec(
      readDocument('docs/deployment.md'),
    )!;
    expect(Number(ms!.replace('_', '')) + lameDuckMs + killTimeoutMs).toBeLessThan(10_000);
  });
});

describe('the page of pm2', () => {
  const page = readDocument('docs/migrating-from-pm2.md');

  const settings =
    'name script instances exec_mode node_args env_production watch autorestart cron_restart ' +
    'out_file error_file log_date_format merge_logs max_memory_restart kill_timeout wait_ready ' +
    'listen_timeout max_restarts';

  it.each(settings.split(' '))('says what becomes of %s', (key) => {
    expect(page).toMatch(new RegExp(`\`[^\`|]*\\b${key}\\b`));
  });

  it.each(['start', 'reload', 'restart', 'stop', 'scale', 'logs', 'save', 'startup', 'monit'])(
    'says what replaces pm2 %s',
    (command) => {
      const rows = rowsOf(page).map(([theirs = '']) => theirs);
      expect(rows.join()).toMatch(new RegExp(`\`pm2 ${command}\\b`));
    },
  );

  it('reloads at the hour of cron_restart, which no age of a worker does', () => {
    const [, replacement] = rowsOf(page).find(([key]) => key!.includes('cron_restart'))!;
    expect(replacement).toContain('nestjs-cluster reload');
  });
});

describe('the page of compatibility', () => {
  const supported = new Map(
    rowsOf(readDocument('docs/compatibility.md')).map(([name, range]) => [
      name!.replaceAll('`', ''),
      range!.replaceAll(/[`\\]/g, ''),
    ]),
  );
  const { engines, peerDependencies, peerDependenciesMeta } = JSON.parse(
    readDocument('package.json'),
  ) as Record<'engines' | 'peerDependencies' | 'peerDependenciesMeta', Record<string, string>>;

  it.each(Object.keys(peerDependenciesMeta))('tells the range of %s', (name) => {
    expect(supported.get(name)).toBe(peerDependencies[name]);
  });

  const ofPackages = PACKAGE_READMES.flatMap((readme) => {
    const manifest = readme.replace('README.md', 'package.json');
    const { peerDependencies: peers } = JSON.parse(readDocument(manifest)) as {
      peerDependencies: Record<string, string>;
    };
    return Object.entries(peers).filter(([name]) => !/nestjs-cluster/.test(name));
  });

  it.each(ofPackages.filter(([name]) => !Object.hasOwn(peerDependencies, name)))(
    'tells the range of %s, which a package beside this one needs',
    (name, range) => {
      expect(supported.get(name)).toBe(range);
    },
  );

  it('tells the range of Node and of Nest', () => {
    expect(supported.get('Node')).toBe(engines['node']);
    expect(supported.get('NestJS')).toBe(peerDependencies['@nestjs/core']);
  });

  it('tells the number of the protocol', () => {
    expect(seal({ type: 'listen-request' }).v).toBe(documentedProtocolVersion());
  });
});

describe('the page of security', () => {
  it('counts the dependencies', () => {
    const { dependencies } = JSON.parse(readDocument('package.json')) as { dependencies: object };
    const page = readDocument('docs/security.md');
    const [, word] = /The package has (\w+) dependencies/.exec(page)!;
    const words = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight'];
    expect(words.indexOf(word!)).toBe(Object.keys(dependencies).length);
  });

  it('names every dependency, also of the packages beside this one', () => {
    const manifests = [
      'package.json',
      ...PACKAGE_READMES.map((path) => path.replace('README.md', 'package.json')),
    ];
    const names = manifests.flatMap((path) =>
      Object.keys((JSON.parse(readDocument(path)) as { dependencies?: object }).dependencies ?? {}),
    );
    const line = /^.*The package has \w+ dependencies.*$/m.exec(
      readDocument('docs/security.md'),
    )![0];
    expect(names.filter((name) => !line.includes(name))).toEqual([]);
  });
});
