import { utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { warnOfChanges } from '../../../../src/offload/pool/thread-warnings.js';
import { temporaryDirectory } from '../../../support/temporary-directory.js';

it('names the files that have changed since the process started', () => {
  const directory = temporaryDirectory();
  const [changed, same, ahead] = ['changed.js', 'same.js', 'ahead.js'].map((name) =>
    join(directory, name),
  );
  for (const file of [changed!, same!, ahead!]) writeFileSync(file, '');
  utimesSync(same!, 1, 1);
  // As an archive may have it: it would count as changed for ever.
  const later = Date.now() / 1_000 + 3_600;
  utimesSync(ahead!, later, later);
  const files = [changed!, same!, ahead!, join(directory, 'gone.js')];
  const tasks = files.map((file) => ({
    name: 'A.a',
    className: 'A',
    injected: false,
    site: { file, place: '' },
  }));
  const warnings: string[] = [];

  warnOfChanges({ tasks, module: undefined, main: undefined }, (text) => warnings.push(text));

  expect(warnings).toEqual([
    `threads run ${changed} as it is on disk now, which has changed since this process started; reload the cluster, and build each release in a directory of its own`,
  ]);
});
