import type { AbstractHttpAdapter } from '@nestjs/core';
import { createExpressReader } from './express-route-template.js';
import { createFastifyReader } from './fastify-route-template.js';
import type { RouteTemplateReader } from './route-template-reader.js';

export type { RouteTemplateReader } from './route-template-reader.js';

/**
 * A reader for the app's adapter. Must be called before the app registers its
 * routes, since Fastify tells the template at registration.
 *
 * What a client sends never makes a template: each is text of the app's own, so
 * that there are no more of them than the app has routes.
 */
export function createRouteTemplateReader(adapter: AbstractHttpAdapter): RouteTemplateReader {
  return adapter.getType() === 'fastify'
    ? createFastifyReader(adapter)
    : createExpressReader(adapter);
}
