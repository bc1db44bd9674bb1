import { isIPv6 } from 'node:net';
import { ToolError } from '../output.js';

/** nginx has to close an idle connection before Node does. Node's default is 5 s. */
const UPSTREAM_KEEP_ALIVE_SECONDS = 4;

/** The idle connections that each nginx process keeps open, for each worker. */
const CONNECTIONS_PER_WORKER = 32;

export interface NginxOptions {
  /** The host at which nginx reaches the workers. */
  readonly host: string;
  readonly listen: string;
  readonly name: string;
  /**
   * Maximum size of a request body, in nginx's notation such as `1m`. A larger body gets a 413.
   */
  readonly maxBodySize: string;
  /** Addresses and networks of proxies whose `X-Forwarded-` headers are trusted. */
  readonly trustedProxy?: readonly string[];
}

/**
 * A file for nginx's `conf.d`: an upstream of the workers, and a server that uses it. It supports
 * keep-alive connections to the workers, WebSockets and streams.
 *
 * @throws ToolError if nginx would listen on a port of a worker.
 */
export function nginxConfiguration(
  ports: readonly number[],
  { host, listen, name, maxBodySize, trustedProxy = [] }: NginxOptions,
): string {
  const publicPort = Number(/\d+$/.exec(listen)![0]);
  if (ports.includes(publicPort)) {
    throw new ToolError(
      `nginx cannot listen on port ${publicPort}: a worker does (${ports[0]} to ${ports.at(-1)}); give another --listen, or move the cluster`,
    );
  }
  const address = isIPv6(host) ? `[${host}]` : host;
  const isBehind = trustedProxy.length > 0;
  return `# ${ports.length} workers of nestjs-cluster. Include it in the http block, e.g. as conf.d/${name}.conf.
upstream ${name} {
  least_conn;
  # The primary holds the ports: while a worker is replaced, its port takes connections.
${ports.map((port) => `  server ${address}:${port} max_fails=0;`).join('\n')}
  keepalive ${ports.length * CONNECTIONS_PER_WORKER};
  # Shorter than Node's own (5 s), so that no request meets a connection that is being closed.
  keepalive_timeout ${UPSTREAM_KEEP_ALIVE_SECONDS}s;
}

map $http_upgrade $${name}_connection {
  default upgrade;
  ''      '';
}
${isBehind ? trustOf(trustedProxy, name) : ''}
server {
  listen ${listen};
${isBehind ? realAddress(trustedProxy) : ''}
  location / {
    proxy_pass http://${name};
    proxy_http_version 1.1;
    proxy_set_header Host $http_host;
    # A client may send any of these headers: the workers get only what nginx knows.
    proxy_set_header X-Forwarded-For $remote_addr;
    proxy_set_header X-Forwarded-Proto ${isBehind ? `$${name}_proto` : '$scheme'};
    proxy_set_header X-Forwarded-Host ${isBehind ? `$${name}_host` : '""'};
    proxy_set_header X-Forwarded-Port "";
    proxy_set_header X-Real-IP $remote_addr;
    proxy_set_header Forwarded "";
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection $${name}_connection;
    # WebSockets and streams may be silent for long.
    proxy_read_timeout 1h;
    # nginx writes a body to its disk before it passes it on.
    client_max_body_size ${maxBodySize};
  }
}
`;
}

/** Uses `X-Forwarded-Proto` and `X-Forwarded-Host` only if a trusted proxy has sent them. */
function trustOf(trustedProxy: readonly string[], name: string): string {
  return `
geo $realip_remote_addr $${name}_trusted {
  default 0;
${trustedProxy.map((each) => `  ${each} 1;`).join('\n')}
}

map $${name}_trusted$http_x_forwarded_proto $${name}_proto {
  default $scheme;
  1http   http;
  1https  https;
}

map $${name}_trusted $${name}_host {
  default '';
  1       $http_x_forwarded_host;
}
`;
}

function realAddress(trustedProxy: readonly string[]): string {
  return `
${trustedProxy.map((each) => `  set_real_ip_from ${each};`).join('\n')}
  real_ip_header X-Forwarded-For;
  real_ip_recursive on;
`;
}
