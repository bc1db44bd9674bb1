/** nginx must close an idle connection before Node does. Node's default is 5 s. */
const UPSTREAM_KEEP_ALIVE_SECONDS = 4;

/** Idle connections per worker that each nginx process keeps open. */
const CONNECTIONS_PER_WORKER = 32;

/**
 * A file for nginx's `conf.d`: an upstream with the workers, and a server that uses it. Supports
 * keep-alive connections to the workers, WebSockets and streams.
 */
export function nginxConfiguration(
  ports: readonly number[],
  { listen, name }: { readonly listen: number; readonly name: string },
): string {
  return `# ${ports.length} workers of nestjs-cluster. Include it in the http block, e.g. as conf.d/${name}.conf.
upstream ${name} {
  least_conn;
  # The primary keeps the ports open, so a port accepts connections while its worker is replaced.
${ports.map((port) => `  server 127.0.0.1:${port} max_fails=0;`).join('\n')}
  keepalive ${ports.length * CONNECTIONS_PER_WORKER};
  # Shorter than Node's timeout (5 s), so that nginx never uses a connection that Node is closing.
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
    # Clients can forge these headers, so nginx replaces them.
    # Behind another proxy: https://nginx.org/en/docs/http/ngx_http_realip_module.html
    proxy_set_header X-Forwarded-For $remote_addr;
    proxy_set_header X-Forwarded-Proto $scheme;
    proxy_set_header X-Forwarded-Host "";
    proxy_set_header X-Forwarded-Port "";
    proxy_set_header X-Real-IP $remote_addr;
    proxy_set_header Forwarded "";
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection $${name}_connection;
    # WebSockets and streams may be idle for a long time.
    proxy_read_timeout 1h;
    # nginx buffers a request body on disk before it forwards the body. Larger bodies get 413.
    client_max_body_size 1m;
  }
}
`;
}
