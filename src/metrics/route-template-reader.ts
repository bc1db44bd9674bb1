import type { IncomingMessage } from 'node:http';

/** Label of requests that no route matched: their paths are the client's, and endless. */
export const UNMATCHED = 'unmatched';

/**
 * Finds the template (`/cats/:id`) of the route that answered a request. Never
 * throws: it is called by Node, where nothing would catch it.
 */
export type RouteTemplateReader = (request: IncomingMessage) => string;
