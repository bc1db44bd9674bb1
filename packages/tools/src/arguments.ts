import { InvalidArgumentError } from 'commander';

const MAX_PORT = 65_535;
const MAX_WORKERS = 256;

/** Returns a parser for whole numbers from 1 to `max`. */
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
    'expected at most 20 lowercase letters, digits and underscores, starting with a letter.',
  );
}

const DEFAULT_ORIGIN = 'http://127.0.0.1:3000';

/** Parses a URL, or a path of an app at the default address. */
export function httpUrl(text: string): string {
  if (/^(https?:|\/)/i.test(text) && URL.canParse(text, DEFAULT_ORIGIN)) {
    return new URL(text, DEFAULT_ORIGIN).href;
  }
  throw new InvalidArgumentError(
    'expected a path such as /cats, or a URL such as http://127.0.0.1:8080/cats.',
  );
}

/** Parses one header `Name: value` and adds it to the previous headers. */
export function addHeader(
  text: string,
  headers: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const [, name = '', value = ''] = /^([^:]+):(.*)$/.exec(text) ?? [];
  try {
    return Object.fromEntries(new Headers({ ...headers, [name]: value }));
  } catch {
    throw new InvalidArgumentError("expected a header such as 'Authorization: Bearer …'.");
  }
}
