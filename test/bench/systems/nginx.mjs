import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { ProcessGroup } from '../process-group.mjs';
import { withDescendants } from '../process-table.mjs';
import { serving } from './answers.mjs';
import { livePids, startOnPorts, workerPorts } from './plain-app.mjs';
import { hasProgram } from './requirements.mjs';

/** @type {System} */
export const nginx = {
  name: 'nginx',
  label: ({ workers }) => `nginx, ${workers} ports`,
  abilities: [],
  async missing() {
    return hasProgram('nginx') ? undefined : 'nginx is missing: apt-get install nginx-light';
  },
  start({ workers, port, ...options }) {
    return ProcessGroup.begin(async (group) => {
      const started = await startOnPorts(group, { ...options, workers, port });
      const folder = group.temporaryFolder();
      const file = path.join(folder, 'nginx.conf');
      writeFileSync(file, configuration(workerPorts({ workers, port }), port));
      const master = group.spawn('nginx', ['-p', folder, '-c', file, '-e', 'stderr']);
      return master.whileRunning(
        serving(group, port, {
          frontPids: () => (master.runs ? [...withDescendants([master.pid])] : []),
          workerPids: () => livePids(started),
        }),
      );
    });
  },
};

/**
 * As nginx's documentation has it for kept upstream connections. Everything that nginx writes goes
 * to its folder. 1,000 clients are 2,000 connections of a proxy.
 */
function configuration(ports, listen) {
  return `daemon off;
worker_processes auto;
pid nginx.pid;
events {
  worker_connections 4096;
}
http {
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
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
}
`;
}
