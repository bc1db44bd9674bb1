export { callerFile } from './task/caller-file.js';
export { CpuBound } from './cpu-bound.decorator.js';
export {
  TaskAbortedException,
  TaskRejectedException,
  type TaskRejection,
  TaskTimeoutException,
  ThreadLostException,
} from './offload.exceptions.js';
export { OffloadExplorer } from './offload.explorer.js';
export { MODULE_ORIGIN, Offload } from './offload.service.js';
export { noteModuleInThread } from './thread/app-code.js';
