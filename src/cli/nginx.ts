import { isIPv6 } from 'node:net';
import { ClusterConfigurationError } from '../errors/index.js';

/** Node closes a kept connection after 5 s without a request; nginx has to be the first. */
const UPSTREAM_KEEP_ALIVE_SECONDS = 4;

/** Kept connections of each nginx process to each worker. */
const CONNECTIONS_PER_WORKER = 32;

/**
 * A file for nginx's `conf.d`: an upstream of the workers and a server that
 * uses it, with kept connections, WebSockets and streams.
 *
 * @throws ClusterConfigurationError where nginx would listen on a port of a worker.
 */
export function nginxConfiguration(
  ports: readonly number[],
  { host, listen, name }: { readonly host: string; readonly listen: string; readonly name: string },
): string {
  const publicPort = Number(/\d+$/.exec(listen)![0]);
  if (ports.includes(publicPort)) {
    throw new ClusterConfigurationError(
      `nginx cannot listen on port ${publicPort}: a worker does (${ports[0]} to ${ports.at(-1)}); give another --listen, or move the cluster`,
    );
  }
  const address = isIPv6(host) ? `[${host}]` : host;
  return `# ${ports.length} workers of nestjs-cluster. Include it in the http block, e.g. as conf.d/${name}.conf.
upstream ${name} {
  least_conn;
  # The primary holds the ports: a worker that is being replaced is no failure.
${ports.map((port) => `  server ${address}:${port} max_fails=0;`).join('\n')}
  keepalive ${ports.length * CONNECTIONS_PER_WORKER};
  # Shorter than Node's own (5 s): else a request may meet a connection that is just being closed.
  keepalive_timeout ${UPSTREAM_KEEP_ALIVE_SECONDS}s;
}

map $http_upgrade $${name}_connection {
  default upgrade;
  ''      '';
}

server {
  listen ${listen};

  location / {
    proxy_pass http://${name};
    proxy_http_version 1.1;
    proxy_set_header Host $http_host;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    proxy_set_header X-Forwarded-Proto $scheme;
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection $${name}_connection;
    # WebSockets and streams may be silent for long; how large a body may be is the app's to say.
    proxy_read_timeout 1h;
    client_max_body_size 0;
  }
}
`;
}
