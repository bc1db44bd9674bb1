// Loaded into the worker that `nestjs-cluster warm` starts.
import { keepCompiled } from '../../contract/process/compile-cache.js';
import type { Examiner } from '../../observe/findings/finding.js';

/**
 * Writes the compiled code once the app is up, because the app's shutdown hooks may hang. If the app
 * fails, Node writes the code as the process exits.
 */
export const startExamination: Examiner['startExamination'] = () => () => {
  void keepCompiled().catch(() => {});
  return [];
};
