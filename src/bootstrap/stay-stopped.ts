/**
 * The exit code after a stop that was asked for over the control socket. Without a process manager
 * it is the outcome of the stop. systemd and pm2 may start the cluster again after any code, so
 * they get a code that only means this stop.
 *
 * Numbers from 150 to 199 belong to applications (Linux Standard Base, init scripts), and a shell
 * uses those up to 192 for signals: 128 + 64 is the last one.
 */
export function exitCodeAfterStop(
  outcome: number,
  { pm_id, INVOCATION_ID, SYSTEMD_EXEC_PID }: NodeJS.ProcessEnv = process.env,
): number {
  // Processes that a service starts inherit INVOCATION_ID. systemd 248 and later say whose it is.
  const isService =
    INVOCATION_ID !== undefined && Number(SYSTEMD_EXEC_PID ?? process.pid) === process.pid;
  const exitCode = 193;
  return isService || pm_id !== undefined ? exitCode : outcome;
}
