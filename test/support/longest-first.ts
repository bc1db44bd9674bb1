import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const tests = join(import.meta.dirname, '..');

/** Seconds that each file took in CI; `note-durations.mjs` writes them. */
const DURATIONS = JSON.parse(
  readFileSync(join(import.meta.dirname, 'durations.json'), 'utf8'),
) as Readonly<Record<string, number>>;

/** Assumed for a file without a known duration, so that it starts early enough not to end last. */
const UNKNOWN_SECONDS = 30;

/** Starts the longest files first, so that no long file runs alone at the end. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const seconds = ({ moduleId }: TestSpecification): number =>
      DURATIONS[relative(tests, moduleId).replace('.test.ts', '')] ?? UNKNOWN_SECONDS;
    return sorted.toSorted((a, b) => seconds(b) - seconds(a));
  }
}
