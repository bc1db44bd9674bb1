import { beforeAll, describe, expect, it } from 'vitest';
import { DOCUMENTS } from '../support/documents.js';
import { errorsOf, samplesOf } from '../support/samples.js';

const SAMPLES = [...DOCUMENTS, 'sample-app/README.md', 'deploy/README.md'].flatMap(samplesOf);

describe('the samples of the documentation', () => {
  let errors: string[][] = [];
  beforeAll(() => void (errors = errorsOf(SAMPLES)), 60_000);

  it('guard nothing by the slot, which two workers or none may have', () => {
    const guards = SAMPLES.filter(({ code }) => /slot\s*[!=]==?\s*\d/.test(code));
    expect(guards).toEqual([]);
  });

  it.each(SAMPLES.map(({ page, line }, i) => [`${page}:${line}`, i] as const))(
    'compile: %s',
    (_, i) => {
      expect(errors[i]).toEqual([]);
    },
  );
});
