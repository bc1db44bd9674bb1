import { ClusterError } from './cluster.errors.js';

/**
 * The cluster cannot listen on an address: the address is taken (`EADDRINUSE`), not permitted
 * (`EACCES`) or belongs to no interface of this machine (`EADDRNOTAVAIL`). Exit code 69
 * (`EX_UNAVAILABLE`).
 */
export class ClusterAddressError extends ClusterError {
  readonly code = 'CLUSTER_ADDRESS_UNAVAILABLE';
  readonly exitCode = 69;

  /** @param cause the system's error; its `code` selects the advice in the message. */
  constructor(
    readonly address: string,
    cause: AddressFailure,
  ) {
    super(`cannot listen on ${address}: ${explain(cause)}`, { cause });
  }
}

/** An error of bind(2) or listen(2), or the report of such an error by another process. */
export interface AddressFailure {
  readonly code?: string | undefined;
  readonly message: string;
}

/** Errors of bind(2) and listen(2) that a restart of the worker cannot fix, each with its advice. */
const REMEDIES: Readonly<Record<string, string>> = {
  EADDRINUSE:
    'the address is already in use (EADDRINUSE). Stop the process that holds it, or choose another port',
  EACCES:
    'permission denied (EACCES). Use a port above 1023 or a directory this user may write to, or grant CAP_NET_BIND_SERVICE',
  EADDRNOTAVAIL:
    'no interface of this machine has that address (EADDRNOTAVAIL). Check the option "host"',
  ENOTFOUND: 'the host name does not resolve (ENOTFOUND). Check the option "host"',
  EAI_AGAIN:
    'the host name does not resolve right now (EAI_AGAIN). Check the option "host" and DNS',
  ENOENT:
    'the directory of the socket does not exist (ENOENT). Create it, or change the option "path"',
};

export function isAddressErrorCode(code: string | undefined): boolean {
  return code !== undefined && Object.hasOwn(REMEDIES, code);
}

function explain(cause: AddressFailure): string {
  return REMEDIES[cause.code ?? ''] ?? cause.message;
}
