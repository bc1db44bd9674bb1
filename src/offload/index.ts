export {
  captureContexts,
  type CarriedContexts,
  carryContext,
  type ContextStorage,
} from './carry-context.js';
export { callerFile } from './call-site.js';
export { CpuBound } from './cpu-bound.decorator.js';
export { move } from './move.js';
export {
  TaskAbortedException,
  TaskRejectedException,
  type TaskRejection,
  TaskTimeoutException,
  ThreadLostException,
} from './offload.exceptions.js';
export { definitionsOf } from './cpu-bound.metadata.js';

export type { Watch } from './call.js';
export {
  REMOTE_RUNNER,
  type RemoteRunner,
  type RemoteSituation,
  type Submitter,
} from './remote-runner.js';
export type { Task } from './task.js';
export { describeError, restoreError, type TaskError } from './task-error.js';
export { arrive, type CallTrace } from './trace-context.js';
export { OffloadExplorer } from './offload.explorer.js';
export { MODULE_ORIGIN, Offload } from './offload.service.js';
export type { OffloadSnapshot } from './offload-snapshot.js';
export { noteModuleInThread } from './thread/module-in-thread.js';
