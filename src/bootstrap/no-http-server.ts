/** The warning if `bootstrap()` was given an address and the app has no HTTP server. */
export const NO_HTTP_SERVER =
  'the app has no HTTP server, and nothing listens on the address that bootstrap() was given; leave "port", "host" and "path" out';
