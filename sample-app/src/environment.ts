import type { ClusterOptions } from 'nestjs-cluster';

/** The settings of the sample app. A variable that is set but empty counts as not set. */
export const environment = Object.freeze({
  options: readOptions(),
  adapter: readAdapter(),
  faults: process.env.SAMPLE_FAULTS === '1',
  shared: process.env.SAMPLE_SHARED === '1',
  redisUrl: process.env.REDIS_URL || undefined,
  failBoot: Boolean(process.env.SAMPLE_FAIL_BOOT),
});

function readOptions(): ClusterOptions {
  const options = parseOptions(process.env.SAMPLE_OPTIONS || '{}');
  // A unix socket takes the place of host and port
  if (options.path !== undefined) return options;
  return {
    port: process.env.PORT || 3000,
    host: process.env.HOST || '127.0.0.1',
    ...(process.env.ADMIN_PORT && { admin: { port: process.env.ADMIN_PORT } }),
    ...options,
  };
}

function parseOptions(text: string): ClusterOptions {
  const message = `SAMPLE_OPTIONS must be a JSON object, but is ${JSON.stringify(text)}; give one such as {"workers":2}`;
  let options: unknown;
  try {
    options = JSON.parse(text);
  } catch (cause) {
    throw new Error(message, { cause });
  }
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new Error(message);
  }
  return options;
}

function readAdapter(): 'express' | 'fastify' | 'node' {
  const adapter = process.env.ADAPTER || 'express';
  if (adapter !== 'express' && adapter !== 'fastify' && adapter !== 'node') {
    throw new Error(
      `ADAPTER must be express, fastify or node, but is ${JSON.stringify(adapter)}; set one of them`,
    );
  }
  return adapter;
}
