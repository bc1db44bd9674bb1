import { Module } from 'node:module';
import v8 from 'node:v8';
import type { Check, Observation } from '../finding.js';

/** The files of the libraries that keep sessions in a class `MemoryStore`. Both are CommonJS. */
const LIBRARY = /[\\/]node_modules[\\/](express-session|@fastify[\\/]session)[\\/]/;

/**
 * Finds sessions that are kept in memory. The store is in a closure of the middleware and cannot be
 * read, so the check counts the stores on the heap. That takes as long as a full garbage
 * collection, too long for a worker that serves requests.
 */
export const sessions: Check = {
  name: 'sessions',
  remedy:
    'give the session middleware a store that all workers share, such as connect-redis, or sign cookies',
  look: () => {
    const { _cache: cache } = Module as unknown as {
      _cache?: Readonly<Record<string, { readonly exports?: unknown } | undefined>>;
    };
    return Object.entries(cache ?? {}).flatMap(([file, module]): Observation[] => {
      const library = LIBRARY.exec(file)?.[1];
      const { MemoryStore } = Object(module?.exports) as { MemoryStore?: unknown };
      if (library === undefined || typeof MemoryStore !== 'function') return [];
      if (v8.queryObjects(MemoryStore as never, { format: 'count' }) === 0) return [];
      return [
        {
          where: `MemoryStore of ${library}`,
          problem:
            'sessions are kept in the worker that began them, and the others know no such client',
        },
      ];
    });
  },
};
