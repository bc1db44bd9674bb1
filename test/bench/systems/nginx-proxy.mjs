import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { withDescendants } from '../process-table.mjs';
import { answersHello } from './answers.mjs';
import { hasProgram } from './requirements.mjs';

export function lacksNginx() {
  return hasProgram('nginx') ? undefined : 'nginx is missing: apt-get install nginx-light';
}

/**
 * Starts nginx in a folder of its own with what belongs into its http block. Resolves once GET
 * /hello is answered through it.
 *
 * @returns its live pids, looked up at each call.
 */
export async function startNginx(group, port, http) {
  const folder = group.temporaryFolder();
  const file = path.join(folder, 'nginx.conf');
  writeFileSync(file, configuration(http));
  const master = group.spawn('nginx', ['-p', folder, '-c', file, '-e', 'stderr']);
  await master.whileRunning(answersHello(group, port));
  return () => (master.runs ? [...withDescendants([master.pid])] : []);
}

/** Everything that nginx writes goes to its folder. 1,000 clients are 2,000 connections of a proxy. */
function configuration(http) {
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
${http}}
`;
}
