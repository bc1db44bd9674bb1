import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterOptions } from '../../deploy/cluster-options.js';
import { ClusterProcess, NODE, stopAll } from '../support/cluster-process.js';
import { MAIN } from '../support/command-line.js';
import { eventually } from '../support/eventually.js';
import { manifestsIn } from '../support/kustomization.js';
import { ControlGroup } from '../support/control-group.js';
import { NetworkNamespace } from '../support/network-namespace.js';
import { type CommandResult, runCommand } from '../support/run-command.js';
import { describeWith, SYSTEM_ENVIRONMENT } from '../support/system-packages.js';

const root = join(import.meta.dirname, '../..');
const GIB = 1024 ** 3;
const TOKEN = 'of-sixteen-characters-or-more';

const { spec: pod } = manifestsIn(join(root, 'deploy/kubernetes/web')).find(
  ({ kind }) => kind === 'Deployment',
)!.spec.template;
const { runAsUser, runAsGroup, fsGroup } = pod.securityContext;
const [app] = pod.containers;
const [{ command: makeDirectories }] = pod.initContainers;
const probeOf = (name: string) => app[`${name}Probe`].httpGet.path as string;

/** The environment variables that the Deployment sets. */
const environment = Object.fromEntries(
  (app.env as { name: string; value?: string }[]).map(({ name, value }) => [name, value ?? TOKEN]),
);

/** Runs the command as a container runtime would: without capabilities, as the user nobody. */
const asUser = [
  'setpriv',
  `--reuid=${runAsUser}`,
  `--regid=${runAsGroup}`,
  `--groups=${fsGroup}`,
  '--no-new-privs',
  '--bounding-set=-all',
  '--inh-caps=-all',
];

/**
 * Makes the root file system read-only, with an emptyDir at /tmp. The kubelet makes an emptyDir
 * owned by root, with the group of fsGroup. The project is mounted again, as it may be in /tmp.
 */
const readOnly = `
  mount --bind "$0" /mnt && mount -t tmpfs -o mode=2777,gid=${fsGroup} tmpfs /tmp
  mkdir -p "$0" && mount --bind /mnt "$0" && umount /mnt && mount -o remount,bind,ro "$0" && mount -o remount,bind,ro /
  ${[...asUser, ...makeDirectories].join(' ')} && exec "$@"`;

describeWith(['ip', 'unshare', 'mount'], 'a pod of deploy/kubernetes', () => {
  let network: NetworkNamespace;
  let memory: ControlGroup | undefined;
  let cluster: ClusterProcess;

  beforeAll(async () => {
    network = await NetworkNamespace.create();
    memory = ControlGroup.ofMemory(Number.parseInt(app.resources.limits.memory, 10) * GIB);
    cluster = new ClusterProcess({
      program: 'sample',
      options: clusterOptions,
      env: environment,
      within: [
        ...(memory?.within ?? []),
        ...network.within,
        'unshare',
        '--mount',
        'sh',
        '-e',
        '-c',
        readOnly,
        root,
        ...asUser,
      ],
    });
    await cluster.event('listening');
  });

  afterAll(async () => {
    await stopAll();
    await network.remove();
    await memory?.remove();
  });

  /** The status that a port answers with. */
  const ask = async (port: number, path: string, token = ''): Promise<number> => {
    const script = `fetch('http://127.0.0.1:${port}${path}', { headers: { authorization: 'Bearer ${token}' } }).then((r) => console.log(r.status))`;
    return Number(await network.output(NODE, ['-e', script]));
  };

  /** A command in the container, as `kubectl exec` starts it. */
  const exec = (...args: string[]): Promise<CommandResult> =>
    runCommand(
      'nsenter',
      ['--target', String(cluster.pid), '--mount', '--net', ...asUser, ...args],
      {
        cwd: root,
        env: { ...SYSTEM_ENVIRONMENT, ...environment },
      },
    );

  it('becomes ready, and is alive, at the paths of its probes', async () => {
    await eventually(
      'a pod that is ready',
      () => ask(3000, probeOf('startup')),
      (status) => status === 200,
    );
    expect(await ask(3000, probeOf('readiness'))).toBe(200);
    expect(await ask(3000, probeOf('liveness'))).toBe(200);
  });

  it('runs with no rights, and a root that it cannot write to', () => {
    const status = readFileSync(`/proc/${cluster.pid}/status`, 'utf8');
    expect(status).toMatch(new RegExp(`^Uid:\\s+${runAsUser}\\s`, 'm'));
    expect(status).toMatch(/^CapEff:\s+0+$/m);
    expect(status).toMatch(/^NoNewPrivs:\s+1$/m);
    expect(readFileSync(`/proc/${cluster.pid}/mounts`, 'utf8')).toMatch(/^\S+ \/ \S+ ro[, ]/m);
  });

  it('shows its metrics to the bearer of the token alone, at the admin listener alone', async () => {
    expect(await ask(9464, '/metrics', TOKEN)).toBe(200);
    expect(await ask(9464, '/metrics')).toBe(401);
    expect(await ask(3000, '/metrics', TOKEN)).toBe(404);
  });

  it('is steered by commands inside of it', async () => {
    const { code, stdout, stderr } = await exec(NODE, MAIN, 'ps', '--json');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('"name":"sample-app"');
    expect(cluster.output).not.toContain('control socket');
  });

  it('serves while its address leaves the Service, and ends before it would be killed', async () => {
    const startedAt = performance.now();
    cluster.kill('SIGTERM');
    await eventually(
      'a pod that says that it leaves',
      () => ask(3000, probeOf('readiness')),
      (status) => status === 503,
    );
    expect(await ask(3000, '/hello')).toBe(200);
    const graceMs = pod.terminationGracePeriodSeconds * 1_000;
    expect(await cluster.exited(graceMs)).toEqual({ code: 0, signal: null });
    expect(performance.now() - startedAt).toBeLessThan(graceMs);
  });
});
