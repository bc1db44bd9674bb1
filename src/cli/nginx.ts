/** Node closes a kept connection after 5 s without a request; nginx has to be the first. */
const UPSTREAM_KEEP_ALIVE_SECONDS = 4;

/** Kept connections of each nginx process to each worker. */
const CONNECTIONS_PER_WORKER = 32;

/**
 * A file for nginx's `conf.d`: an upstream of the workers and a server that
 * uses it, with kept connections, WebSockets and streams.
 */
export function nginxConfiguration(
  ports: readonly number[],
  { host, listen }: { readonly host: string; readonly listen: number },
): string {
  const address = host.includes(':') ? `[${host}]` : host;
  return `# ${ports.length} workers of nestjs-cluster. Include it in the http block, e.g. as conf.d/app.conf.
upstream nestjs_cluster {
  least_conn;
  # The primary holds the ports: a worker that is replaced is no failure.
${ports.map((port) => `  server ${address}:${port} max_fails=0;`).join('\n')}
  keepalive ${ports.length * CONNECTIONS_PER_WORKER};
  keepalive_timeout ${UPSTREAM_KEEP_ALIVE_SECONDS}s;
}

map $http_upgrade $nestjs_cluster_connection {
  default upgrade;
  ''      '';
}

server {
  listen ${listen};

  location / {
    proxy_pass http://nestjs_cluster;
    proxy_http_version 1.1;
    proxy_set_header Host $http_host;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    proxy_set_header X-Forwarded-Proto $scheme;
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection $nestjs_cluster_connection;
  }
}
`;
}
