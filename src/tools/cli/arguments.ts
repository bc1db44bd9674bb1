import { isIP, isIPv4, isIPv6 } from 'node:net';
import { InvalidArgumentError } from 'commander';
import { MAX_PORT, MAX_WORKERS } from '../../contract/options/index.js';

/** A parser of a whole number from 1 to `max`. */
export function wholeNumber(max: number, what: string): (text: string) => number {
  return (text) => {
    const value = /^\d{1,5}$/.test(text) ? Number(text) : 0;
    if (value >= 1 && value <= max) return value;
    throw new InvalidArgumentError(`expected ${what} from 1 to ${max}.`);
  };
}

/** A parser of a number with or without decimals. */
export function decimal(min: number, max: number, what: string): (text: string) => number {
  return (text) => {
    const value = /^\d{1,9}(?:\.\d{1,9})?$/.test(text) ? Number(text) : NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`expected ${what} from ${min} to ${max}.`);
  };
}

export const portNumber = wholeNumber(MAX_PORT, 'a port');
export const workerCount = wholeNumber(MAX_WORKERS, 'a whole number');

/** Slots begin at 0. */
export function slotNumber(text: string): number {
  if (/^\d{1,3}$/.test(text) && Number(text) < MAX_WORKERS) return Number(text);
  throw new InvalidArgumentError('expected the number of a slot, as status shows it.');
}

/** A name that is valid for an upstream, a chain and a table. */
export function identifier(text: string): string {
  if (/^[a-z][a-z0-9_]{0,19}$/.test(text)) return text;
  throw new InvalidArgumentError(
    'expected at most 20 small letters, digits and underscores, the first a letter.',
  );
}

/** The host of a URL, as an address is written outside of one. */
export function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^\[|\]$/g, '');
}

function isHostName(text: string): boolean {
  return isIPv6(text) || /^[a-z\d](?:[a-z\d.-]*[a-z\d])?$/i.test(text);
}

export function hostName(text: string): string {
  if (isHostName(text)) return text;
  throw new InvalidArgumentError('expected a host name or an address.');
}

/** An address on which nginx listens: a port, or an address and a port. */
export function listenAddress(text: string): string {
  const [, ipv6, ipv4, port] = /^(?:(?:\[([\da-f:.]+)\]|([\d.]+)):)?(\d+)$/i.exec(text) ?? [];
  if (
    port === undefined ||
    (ipv6 !== undefined && !isIPv6(ipv6)) ||
    (ipv4 !== undefined && !isIPv4(ipv4))
  ) {
    throw new InvalidArgumentError(
      "expected a port, or an address as in '127.0.0.1:8080' or '[::]:80'.",
    );
  }
  portNumber(port);
  return text;
}

/** An address or a network of a proxy; collects those that are given. */
export function proxyAddress(text: string, others: readonly string[]): readonly string[] {
  const [, address = '', bits] = /^([\da-f:.]+)(?:\/(\d{1,3}))?$/i.exec(text) ?? [];
  const most = { 0: -1, 4: 32, 6: 128 }[isIP(address)]!;
  if (Number(bits ?? 0) <= most) return [...others, text];
  throw new InvalidArgumentError("expected an address or a network, such as '10.0.0.0/8'.");
}

/** A size as nginx writes it. 0 is refused, because it would turn the limit off. */
export function bodySize(text: string): string {
  if (/^[1-9]\d{0,8}[kmg]?$/i.test(text)) return text;
  throw new InvalidArgumentError("expected a size such as '512k' or '20m'.");
}

export function httpUrl(text: string): string {
  // Its host goes into a configuration, where a URL may hold what ends a word there.
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) && isHostName(hostOf(text))) {
    return text;
  }
  throw new InvalidArgumentError('expected a URL such as http://127.0.0.1:3000/health.');
}
