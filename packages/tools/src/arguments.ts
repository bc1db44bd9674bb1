import { validateHeaderName, validateHeaderValue } from 'node:http';
import { isIP, isIPv4, isIPv6 } from 'node:net';
import { InvalidArgumentError } from 'commander';

export const MAX_PORT = 65_535;
const MAX_WORKERS = 256;

/** A parser of a whole number from 1 to `max`. */
export function wholeNumber(max: number, what: string): (text: string) => number {
  return (text) => {
    const value = /^\d{1,5}$/.test(text) ? Number(text) : 0;
    if (value >= 1 && value <= max) return value;
    throw new InvalidArgumentError(`expected ${what} from 1 to ${max}.`);
  };
}

export const portNumber = wholeNumber(MAX_PORT, 'a port');
export const workerCount = wholeNumber(MAX_WORKERS, 'a whole number');

/** A name that is valid for an nginx upstream and an iptables chain. */
export function identifier(text: string): string {
  if (/^[a-z][a-z0-9_]{0,19}$/.test(text)) return text;
  throw new InvalidArgumentError(
    'expected at most 20 small letters, digits and underscores, the first a letter.',
  );
}

/** The host of a URL. An IPv6 address comes without its brackets. */
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

/** Parses one `--trusted-proxy` and adds it to the proxies that were given before. */
export function proxyAddress(text: string, others: readonly string[] = []): readonly string[] {
  const [, address = '', bits] = /^([\da-f:.]+)(?:\/(\d{1,3}))?$/i.exec(text) ?? [];
  const most = { 0: -1, 4: 32, 6: 128 }[isIP(address)]!;
  if (Number(bits ?? 0) <= most) return [...others, text];
  throw new InvalidArgumentError("expected an address or a network, such as '10.0.0.0/8'.");
}

/** A size in nginx's notation. 0 is refused, because it would turn the limit off. */
export function bodySize(text: string): string {
  if (/^[1-9]\d{0,8}[kmg]?$/i.test(text)) return text;
  throw new InvalidArgumentError("expected a size such as '512k' or '20m'.");
}

export function httpUrl(text: string): string {
  // The host is written into a configuration file, so it may not contain spaces or punctuation.
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) && isHostName(hostOf(text))) {
    return text;
  }
  throw new InvalidArgumentError('expected a URL such as http://127.0.0.1:3000/health.');
}

/** The default address of an app. */
const DEFAULT_ORIGIN = 'http://127.0.0.1:3000';

/** The URL of a route. A path alone means the app at the default address. */
export function routeUrl(text: string): string {
  if (text.startsWith('/') && URL.canParse(DEFAULT_ORIGIN + text)) return DEFAULT_ORIGIN + text;
  if (/^https?:/i.test(text)) return httpUrl(text);
  throw new InvalidArgumentError(
    'expected a path such as /cats, or a URL such as http://127.0.0.1:8080/cats.',
  );
}

/** A path of an endpoint. */
export function endpointPath(text: string): string {
  if (/^\/[^\s?#]*$/.test(text)) return text;
  throw new InvalidArgumentError('expected a path such as /health.');
}

/** Parses one header `Name: value` and adds it to the headers that were given before. */
export function addHeader(
  text: string,
  headers: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const [, name = '', value = ''] = /^([^:]+):(.*)$/.exec(text) ?? [];
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
  } catch {
    throw new InvalidArgumentError("expected a header such as 'Authorization: Bearer …'.");
  }
  return { ...headers, [name.toLowerCase()]: value.trim() };
}
