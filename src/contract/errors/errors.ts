import { oneLine } from './error-report.js';

export { clean, inspected, messageOf, oneLine } from './error-report.js';

/**
 * Base class of every error that this package throws or reports.
 *
 * Its message has three parts: what happened, the value that was seen, and what to do about it.
 * `cause` keeps the underlying error, if there is one.
 */
export abstract class ClusterError extends Error {
  /** Stable, machine-readable name of the cause: `CLUSTER_…`. */
  abstract readonly code: string;
  /** Exit code of the process if this error ends it (sysexits.h). */
  abstract readonly exitCode: number;

  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
  }
}

/**
 * An option or an environment variable has a wrong value. Thrown before any process is forked; the
 * process exits with 78 (`EX_CONFIG`).
 */
export class ClusterConfigurationError extends ClusterError {
  /** Identifies the error after it has crossed a process boundary, where its class is lost. */
  static readonly code = 'CLUSTER_CONFIGURATION';
  readonly code = ClusterConfigurationError.code;
  readonly exitCode = 78;
}

/** Advice for bind(2) and listen(2) errors that restarting the worker cannot fix. */
const REMEDIES: Readonly<Record<string, string>> = {
  EADDRINUSE:
    'the address is already in use (EADDRINUSE). Stop the process that holds it, or choose another port',
  EACCES:
    'permission denied (EACCES). Use a port above 1023 or a directory this user may write to, or grant CAP_NET_BIND_SERVICE',
  EADDRNOTAVAIL:
    'no interface on this machine has that address (EADDRNOTAVAIL). Check the option "host"',
  ENOTFOUND: 'the host name does not resolve (ENOTFOUND). Check the option "host"',
  EAI_AGAIN:
    'the host name does not resolve right now (EAI_AGAIN). Check the option "host" and DNS',
  ENOENT:
    'the directory of the socket does not exist (ENOENT). Create it, or change the option "path"',
};

export function isAddressErrorCode(code: string | undefined): boolean {
  return code !== undefined && Object.hasOwn(REMEDIES, code);
}

/**
 * The cluster cannot listen on an address: the address is taken (`EADDRINUSE`), not permitted
 * (`EACCES`) or belongs to no interface of this machine (`EADDRNOTAVAIL`). Exit code 69
 * (`EX_UNAVAILABLE`).
 */
export class ClusterAddressError extends ClusterError {
  readonly code = 'CLUSTER_ADDRESS_UNAVAILABLE';
  readonly exitCode = 69;

  /** @param cause the system's error, or a report of it; its `code` selects the advice in the message. */
  constructor(
    readonly address: string,
    cause: { readonly code?: string | undefined; readonly message: string },
  ) {
    super(`cannot listen on ${address}: ${REMEDIES[cause.code ?? ''] ?? cause.message}`, { cause });
  }
}

/** The call needs a primary, and this process has none. */
export class ClusterNoPrimaryError extends ClusterError {
  readonly code = 'CLUSTER_NO_PRIMARY';
  readonly exitCode = 1;

  /** @param what the call that needs a primary. */
  constructor(what: string, why: string) {
    super(`${what} needs a primary: ${why}`);
  }
}

/** No worker has ever become ready. `cause` is the last error a worker reported. Exit code 70 (`EX_SOFTWARE`). */
export class ClusterWorkersFailedError extends ClusterError {
  readonly code = 'CLUSTER_WORKERS_FAILED';
  readonly exitCode = 70;
}

/**
 * An argument or a result of a `@CpuBound()` method cannot be copied between threads by structured
 * clone. The message names the parameter and, if known, the part of the value that cannot be copied.
 */
export class ClusterUncloneableError extends ClusterError {
  readonly code = 'CLUSTER_UNCLONEABLE_VALUE';
  readonly exitCode = 1;
}

/** A request to the control socket was refused. `status` is the HTTP status of the answer. */
export class Refusal extends Error {
  /** @param code machine-readable; `message` is for humans. */
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

const QUIET_MS = 60_000;

/** Logs at most one line per kind and minute. For warnings that every request may cause. */
export class OnceAMinute {
  readonly #kinds = new Map<string, { skipped: number; readonly due: number }>();

  constructor(private readonly log: (line: string) => void) {}

  /** @param kind groups similar lines. Kinds are never removed, so there must be only a few. */
  say(text: string, kind: string): void {
    const now = performance.now();
    const last = this.#kinds.get(kind);
    if (last !== undefined && last.due > now) {
      last.skipped += 1;
      return;
    }
    this.#kinds.set(kind, { skipped: 0, due: now + QUIET_MS });
    const more = last?.skipped ? ` (and ${last.skipped} more since the last such line)` : '';
    this.log(oneLine(text) + more);
  }
}

type Log<More extends unknown[]> = (text: string, ...more: More) => void;

/** Wraps `log` so that each text is logged only once. */
export function onceEach<More extends unknown[]>(log: Log<More>): Log<More> {
  const logged = new Set<string>();
  return (text, ...more) => {
    if (logged.has(text)) return;
    logged.add(text);
    log(text, ...more);
  };
}
