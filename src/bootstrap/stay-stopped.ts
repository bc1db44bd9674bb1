/**
 * The exit code after a stop that was asked for over the control socket, under a process manager
 * that would start the cluster again after any other code. The range 150 to 199 belongs to
 * applications (Linux Standard Base, init scripts), and 193 is the first number in it that no
 * signal has: 128 + 64 is the last one.
 */
const STAY_STOPPED_CODE = 193;

/** The exit code after a stop over the control socket. @param outcome the code without a process manager. */
export function exitCodeAfterStop(
  outcome: number,
  { pm_id, INVOCATION_ID, SYSTEMD_EXEC_PID }: NodeJS.ProcessEnv = process.env,
): number {
  // Processes that a service starts inherit INVOCATION_ID. systemd 248 and later say whose it is.
  const isService =
    INVOCATION_ID !== undefined && Number(SYSTEMD_EXEC_PID ?? process.pid) === process.pid;
  return isService || pm_id !== undefined ? STAY_STOPPED_CODE : outcome;
}
