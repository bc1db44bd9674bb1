import { InvalidArgumentError } from 'commander';
import { httpUrl } from '../cli/arguments.js';

/** The default address of an app. */
const DEFAULT_ORIGIN = 'http://127.0.0.1:3000';

/** A route, as a path of the app at the default address, or as a URL. */
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

/** One `Name: value` more. */
export function addHeader(
  text: string,
  headers: Readonly<Record<string, string>>,
): Record<string, string> {
  const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+):\s*(.*)$/.exec(text) ?? [];
  // oxlint-disable-next-line no-control-regex -- what would end a header
  if (name === undefined || value === undefined || /[\u0000-\u001f\u007f]/.test(value)) {
    throw new InvalidArgumentError("expected a header such as 'Authorization: Bearer …'.");
  }
  return { ...headers, [name.toLowerCase()]: value };
}
