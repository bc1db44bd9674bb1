import { isIPv4 } from 'node:net';

/** Whether only this machine can reach a server that listens on that host. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));
