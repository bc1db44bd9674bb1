export { carryContext, type ContextStorage } from './carry-context.js';
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
export { OffloadExplorer } from './offload.explorer.js';
export { MODULE_ORIGIN, Offload } from './offload.service.js';
export type { OffloadSnapshot } from './offload-snapshot.js';
export { noteModuleInThread } from './thread/module-in-thread.js';
