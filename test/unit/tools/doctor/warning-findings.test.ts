import { expect, it } from 'vitest';
import { silencedBy } from '../../../../src/contract/options/doctor-options.interface.js';
import { findingOf } from '../../../../src/tools/doctor/examine-app.js';

it('a warning becomes a finding with the name that silences it', () => {
  const warning = `P.sync takes cart: Cart; make one anew there; ${silencedBy('cpu-bound-parameter')}`;

  expect(findingOf(warning, 'main.js')).toEqual({
    name: 'cpu-bound-parameter',
    level: 'problem',
    where: 'main.js',
    problem: 'P.sync takes cart: Cart',
    remedy: 'make one anew there',
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
