/** The warning when `bootstrap()` was given an address, but the app has no HTTP server. */
export const NO_HTTP_SERVER =
  'the app has no HTTP server, and nothing listens on the address that bootstrap() was given; leave "port", "host" and "path" out';
