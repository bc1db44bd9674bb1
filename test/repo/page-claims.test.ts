import { describe, expect, it } from 'vitest';
import { seal } from '../../src/contract/messages.js';
import {
  documentedProtocolVersion,
  PACKAGE_READMES,
  readDocument,
  rowsOf,
  sectionOf,
} from '../support/documents.js';

describe('the promise that no request is lost', () => {
  it('names its exceptions, in the README and where they are explained', () => {
    const promise = /^- \*\*No lost requests in a deploy\.\*\* .*$/m.exec(
      readDocument('README.md'),
    )![0];
    const page = sectionOf(readDocument('docs/reload-and-releases.md'), 'What is lost');
    expect(promise).toContain('reload-and-releases.md#what-is-lost');
    for (const text of [promise, page]) {
      expect(text).toMatch(/\bPOST\b.*\bidle connection/s);
      expect(text).toContain('killed worker');
    }
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
