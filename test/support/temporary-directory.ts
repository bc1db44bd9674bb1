import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/**
 * A directory of the running test's own; removed when the test is finished.
 *
 * @param atEnd gets what removes it, in place of Vitest's `onTestFinished()`.
 */
export function temporaryDirectory(
  atEnd: (remove: () => void) => unknown = onTestFinished,
): string {
  const path = mkdtempSync(join(tmpdir(), 'nestjs-cluster-'));
  atEnd(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
