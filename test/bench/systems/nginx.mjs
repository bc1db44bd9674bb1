import { ProcessGroup } from '../process-group.mjs';
import { serving } from './answers.mjs';
import { lacksNginx, startNginx } from './nginx-proxy.mjs';
import { livePids, startOnPorts, workerPorts } from './plain-app.mjs';

/** @type {System} */
export const nginx = {
  name: 'nginx',
  label: ({ workers }) => `nginx, ${workers} ports`,
  abilities: [],
  async missing() {
    return lacksNginx();
  },
  start({ workers, port, ...options }) {
    return ProcessGroup.begin(async (group) => {
      const started = await startOnPorts(group, { ...options, workers, port });
      const http = proxyTo(workerPorts({ workers, port }), port);
      const frontPids = await startNginx(group, port, http);
      return serving(group, port, {
        frontPids,
        workerPids: () => livePids(started),
      });
    });
  },
};

/** As nginx's documentation has it for kept upstream connections. */
function proxyTo(ports, listen) {
  return `
  upstream plain {
${ports.map((port) => `    server 127.0.0.1:${port};`).join('\n')}
    keepalive ${ports.length * 32};
    # Node closes a kept connection after 5 s: nginx has to be the first.
    keepalive_timeout 4s;
  }
  server {
    listen 127.0.0.1:${listen};
    location / {
      proxy_pass http://plain;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      client_max_body_size 2m;
    }
  }
`;
}
