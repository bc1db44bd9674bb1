/** nginx has to close an idle connection before Node does. Node's default is 5 s. */
const UPSTREAM_KEEP_ALIVE_SECONDS = 4;

/** The idle connections that each nginx process keeps open, for each worker. */
const CONNECTIONS_PER_WORKER = 32;

/**
 * A file for nginx's `conf.d`: an upstream of the workers, and a server that uses it. It supports
 * keep-alive connections to the workers, WebSockets and streams.
 */
export function nginxConfiguration(
  ports: readonly number[],
  { listen, name }: { readonly listen: number; readonly name: string },
): string {
  return `# ${ports.length} workers of nestjs-cluster. Include it in the http block, e.g. as conf.d/${name}.conf.
upstream ${name} {
  least_conn;
  # The primary holds the ports: while a worker is replaced, its port takes connections.
${ports.map((port) => `  server 127.0.0.1:${port} max_fails=0;`).join('\n')}
  keepalive ${ports.length * CONNECTIONS_PER_WORKER};
  # Shorter than Node's own (5 s), so that no request meets a connection that is being closed.
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
    # A client may send any of these headers: the workers get only what nginx knows.
    # Behind another proxy: https://nginx.org/en/docs/http/ngx_http_realip_module.html
    proxy_set_header X-Forwarded-For $remote_addr;
    proxy_set_header X-Forwarded-Proto $scheme;
    proxy_set_header X-Forwarded-Host "";
    proxy_set_header X-Forwarded-Port "";
    proxy_set_header X-Real-IP $remote_addr;
    proxy_set_header Forwarded "";
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection $${name}_connection;
    # WebSockets and streams may be silent for long.
    proxy_read_timeout 1h;
    # nginx writes a body to its disk before it passes it on, and answers a larger one with 413.
    client_max_body_size 1m;
  }
}
`;
}
