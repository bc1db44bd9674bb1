import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A directory of the running test's own; removed when the test is finished. */
export function temporaryDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), 'nestjs-cluster-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
