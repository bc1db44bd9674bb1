export {
  captureContexts,
  type CarriedContexts,
  carryContext,
  type ContextStorage,
} from './task/carry-context.js';
export { callSite } from './task/call-site.js';
export { CpuBound } from './cpu-bound.decorator.js';
export {
  TaskAbortedException,
  TaskRejectedException,
  type TaskRejection,
  TaskTimeoutException,
  ThreadLostException,
} from './offload.exceptions.js';
export { type CpuBoundDefinition, definitionsOf, type Method } from './cpu-bound.metadata.js';
export { refusalOf } from './task/refusals.js';

export { REMOTE_RUNNER, type RemoteRunner, type RemoteSituation } from './run/remote-runner.js';
export type { Submitter, Watch } from './run/runner.interface.js';
export type { Task } from './task/task.js';
export { describeError, restoreError, type TaskError } from './task/task-error.js';
export { type Member, OffloadExplorer } from './offload.explorer.js';
export { MODULE_ORIGIN, Offload } from './offload.service.js';
export { noteModuleInThread } from './thread/module-in-thread.js';
