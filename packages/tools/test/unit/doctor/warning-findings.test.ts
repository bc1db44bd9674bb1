import { expect, it } from 'vitest';
import { silencedBy } from '../../../../src/contract/options/warning-options.interface.js';
import { findingOf } from '../../../../src/tools/doctor/examine-app.js';

it('a warning becomes a finding with the name that silences it', () => {
  const warning = `40 threads on 2 cores; lower offload.threads; ${silencedBy('cpu-bound-threads')}`;

  expect(findingOf(warning, 'main.js')).toEqual({
    name: 'cpu-bound-threads',
    level: 'problem',
    where: 'main.js',
    problem: '40 threads on 2 cores',
    remedy: 'lower offload.threads',
  });
});

it('a warning without a name is called warning', () => {
  expect(findingOf('odd; leave it out', 'main.js')).toMatchObject({
    name: 'warning',
    problem: 'odd',
    remedy: 'leave it out',
  });
  expect(findingOf('odd', 'main.js')).toMatchObject({ remedy: 'read the log of the app' });
});
