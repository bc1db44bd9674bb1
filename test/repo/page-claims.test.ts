import { describe, expect, it } from 'vitest';
import { seal } from '../../src/contract/messages.js';
import { workerArguments } from '../../src/primary/worker-arguments.js';
import {
  documentedProtocolVersion,
  PACKAGE_READMES,
  readDocument,
  rowsOf,
} from '../support/documents.js';

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

it('the page on how it works names the flag of workers', () => {
  const { execArgv, own } = workerArguments(2, 'main.js');
  expect(readDocument('docs/how-it-works.md')).toContain(`\`${execArgv[own - 1]}\``);
});

it('the page of security counts and names every dependency', () => {
  const dependenciesOf = (path: string) =>
    Object.keys((JSON.parse(readDocument(path)) as { dependencies?: object }).dependencies ?? {});
  const own = dependenciesOf('package.json');
  const beside = PACKAGE_READMES.map((path) => path.replace('README.md', 'package.json'));
  const [line, word] = /^.*The package has (\w+) dependencies.*$/m.exec(
    readDocument('docs/security.md'),
  )!;
  const words = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight'];
  expect(words.indexOf(word!)).toBe(own.length);
  const names = [...own, ...beside.flatMap(dependenciesOf)];
  expect(names.filter((name) => !line.includes(name))).toEqual([]);
});
