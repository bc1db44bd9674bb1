import { readFile, stat } from 'node:fs/promises';
import type { RecordingKind } from '../../contract/snapshot/index.js';
import { type CpuProfile, type CpuSummary, describeCpu, summarizeCpu } from './cpu-summary.js';
import { describeHeap, type HeapProfile, type HeapSummary, summarizeHeap } from './heap-summary.js';

/** Maximum size of a file to summarize. Reading a larger file takes seconds and gigabytes of memory. */
const MAX_BYTES = 100e6;

/** The summary of a profile for a terminal. */
export interface ProfileSummary {
  readonly summary: CpuSummary | HeapSummary;
  readonly lines: readonly string[];
}

/** @returns `undefined` for a file that is too large or elsewhere, or is not a profile of that kind. */
export async function summarizeProfile(
  kind: RecordingKind,
  file: string,
): Promise<ProfileSummary | undefined> {
  try {
    if ((await stat(file)).size > MAX_BYTES) return undefined;
    const profile: unknown = JSON.parse(await readFile(file, 'utf8'));
    if (kind === 'cpu-profile') {
      const summary = summarizeCpu(profile as CpuProfile);
      return { summary, lines: describeCpu(summary) };
    }
    const summary = summarizeHeap(profile as HeapProfile);
    return { summary, lines: describeHeap(summary) };
  } catch {
    return undefined; // the user has the file without a summary too
  }
}
