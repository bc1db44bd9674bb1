import { expect, it } from 'vitest';
import { findingOf, pageOf } from '../../../src/doctor/report.js';

it.each([
  [
    "40 threads on 2 cores; lower offload.threads; warnings: { ignore: ['cpu-bound-threads'] } of bootstrap() silences this",
    {
      name: 'cpu-bound-threads',
      problem: '40 threads on 2 cores',
      remedy: 'lower offload.threads',
    },
  ],
  ['odd; leave it out', { name: 'warning', problem: 'odd', remedy: 'leave it out' }],
  ['odd', { name: 'warning', problem: 'odd', remedy: "read the app's log" }],
])('a warning of the start becomes a finding: %s', (warning, finding) => {
  expect(findingOf(warning, 'main.js')).toEqual({ ...finding, where: 'main.js' });
});

it('a report has a paragraph for each finding, in printable characters', () => {
  const found = (name: 'cache' | 'sessions') => ({
    name,
    where: 'Cats\u001B (AppModule)',
    problem: 'a problem\non two lines',
    remedy: 'a remedy',
  });
  const report = { main: 'dist/main.js', workers: 4, ignored: [] };

  expect(pageOf({ ...report, findings: [found('cache'), found('sessions')] })).toBe(
    `cache     Cats  (AppModule)
          a problem on two lines
          -> a remedy

sessions  Cats  (AppModule)
          a problem on two lines
          -> a remedy

dist/main.js with 4 workers: 2 findings
`,
  );
  expect(pageOf({ ...report, findings: [], ignored: ['cache'] })).toBe(
    'dist/main.js with 4 workers: 0 findings; ignored: cache\n',
  );
});
