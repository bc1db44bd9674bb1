import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { Ajv, type ValidateFunction } from 'ajv';
import { clusterOptions } from '../../deploy/cluster-options.js';
import { availableWorkers } from '../../src/contract/process/machine.js';
import { resolveOptions } from '../../src/contract/options/resolve.js';
import { readDocument, rowsOf } from '../support/documents.js';
import { type Manifest, manifestsIn } from '../support/kustomization.js';

/**
 * JSON schemas of the API, without descriptions, and with no property that is not named: of
 * Kubernetes 1.36 as in the Python package kubernetes-validate 1.37.0, of KEDA 2.16 as in
 * cloudcoil.models.keda 2.16.1.0, and of the Prometheus operator 0.80 as in
 * cloudcoil.models.prometheus_operator 0.80.1.0 (all of them Apache 2.0).
 */
const { kinds, $defs } = JSON.parse(
  readFileSync(join(import.meta.dirname, '../fixtures/kubernetes-schemas.json'), 'utf8'),
) as { kinds: Record<string, { $ref: string }>; $defs: object };

const ajv = new Ajv({ strict: false, allErrors: true }).addSchema({ $defs }, 'api');
const validators = new Map<string, ValidateFunction>();

/** The errors that the API would refuse an object for, one line each. */
function schemaErrors(manifest: Manifest): string[] {
  const kind = `${manifest.apiVersion} ${manifest.kind}`;
  const reference = kinds[kind];
  if (reference === undefined) return [`there is no schema of ${kind}`];
  const validate = validators.get(kind) ?? ajv.compile({ $ref: `api${reference.$ref}` });
  validators.set(kind, validate);
  validate(manifest);
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  );
}

const root = join(import.meta.dirname, '../..');
const MIB = 1024 * 1024;

/** Between the end of the cluster and the kill: the processes' own exits, a slow node. */
const SPARE_SECONDS = [5, 10] as const;

/** A scrape of a busy primary takes so long: docs/admin-listener.md. */
const SCRAPE_SECONDS = 5;

const render = (overlay: string) => manifestsIn(join(root, 'deploy/kubernetes', overlay));
const OVERLAYS = ['web', 'consumer'] as const;

/** The variables of a container, with a token in place of the secret. */
const variablesOf = ({ env }: Manifest): NodeJS.ProcessEnv =>
  Object.fromEntries(
    env.map(({ name, value = 'the-token-of-the-secret' }: Manifest) => [name, value]),
  );

describe.each(OVERLAYS)('the manifests of deploy/kubernetes/%s', (overlay) => {
  const manifests = render(overlay);
  const one = (kind: string) => manifests.find((manifest) => manifest.kind === kind)!;
  const deployment = one('Deployment');
  const pod = deployment.spec.template.spec;
  const [app] = pod.containers;
  const variables = variablesOf(app);
  const variable = (name: string) => variables[name];
  const { address, admin, hangTimeoutMs, readyTimeoutMs, shutdown } = resolveOptions(
    clusterOptions,
    variables,
    () => 2,
  );
  const portNamed = (name: string) =>
    app.ports.find((each: { name: string }) => each.name === name)?.containerPort;

  it.each(manifests)('are as the API wants them: $kind', (manifest) => {
    expect(schemaErrors(manifest)).toEqual([]);
  });

  it('run as nobody who could do harm, with limits', () => {
    expect(pod).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    });
    expect([pod.hostNetwork, pod.hostPID]).toEqual([undefined, undefined]);
    expect(JSON.stringify(pod)).not.toContain('hostPath');
    for (const container of [...pod.initContainers, app]) {
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      expect(container.resources.limits).toMatchObject({ cpu: expect.anything() });
      expect(container.image).toMatch(/:(?!latest$)[\w.-]+$/);
    }
  });

  it('mean these pods', () => {
    const labels = { 'app.kubernetes.io/name': 'app' };
    const selectors = [
      deployment.spec.selector.matchLabels,
      deployment.spec.template.metadata.labels,
      ...pod.topologySpreadConstraints.map((each: Manifest) => each.labelSelector.matchLabels),
      one('PodDisruptionBudget').spec.selector.matchLabels,
      one('PodMonitor').spec.selector.matchLabels,
      one('NetworkPolicy').spec.podSelector.matchLabels,
      one('Service')?.spec.selector ?? labels,
    ];
    for (const selector of selectors) expect(selector).toEqual(labels);
    const scaled = one(overlay === 'web' ? 'HorizontalPodAutoscaler' : 'ScaledObject');
    expect(scaled.spec.scaleTargetRef.name).toMatch(new RegExp(`^${deployment.metadata.name}`));
  });

  it('wait for a stop to end, and not much longer', () => {
    const { lameDuckMs, drainTimeoutMs, killTimeoutMs } = shutdown;
    const stopSeconds = (lameDuckMs + drainTimeoutMs + killTimeoutMs) / 1_000;
    const spare = pod.terminationGracePeriodSeconds - stopSeconds;
    expect(spare).toBeGreaterThanOrEqual(SPARE_SECONDS[0]);
    expect(spare).toBeLessThanOrEqual(SPARE_SECONDS[1]);
  });

  it('are lame ducks for longer than it takes to ask whether they are ready', () => {
    const { periodSeconds, timeoutSeconds } = app.readinessProbe;
    expect(shutdown.lameDuckMs).toBeGreaterThan((periodSeconds + timeoutSeconds) * 1_000);
  });

  it('let a worker become ready before the pod is given up', () => {
    const { periodSeconds, failureThreshold } = app.startupProbe;
    expect(periodSeconds * failureThreshold * 1_000).toBeGreaterThan(readyTimeoutMs);
  });

  it('let the primary replace a worker that hangs before the pod is restarted', () => {
    const { periodSeconds, failureThreshold } = app.livenessProbe;
    expect(periodSeconds * (failureThreshold - 1) * 1_000).toBeGreaterThan(hangTimeoutMs);
  });

  it('name the ports that the cluster listens on', () => {
    expect({ kind: 'tcp', port: portNamed('http'), host: undefined }).toEqual(address);
    expect({ port: portNamed('admin'), host: '0.0.0.0' }).toEqual(admin);
    for (const probe of [app.startupProbe, app.readinessProbe, app.livenessProbe]) {
      expect(probe.httpGet.port).toBe('http');
    }
  });

  it('have several workers in a pod, so that there is a primary with an admin listener', () => {
    expect(variable('CLUSTER_WORKERS')).toBe('auto');
    const { cpu, memory } = app.resources.limits;
    const limits = { cpus: Number(cpu), memoryBytes: Number.parseInt(memory, 10) * 1024 * MIB };
    expect(memory).toMatch(/^\d+Gi$/);
    expect(availableWorkers(limits, 64)).toBe(Number(cpu));
    expect(app.resources.requests).toEqual(app.resources.limits);
  });

  it('hand the same token to the primary and to Prometheus, which waits for a busy primary', () => {
    const [{ port, scrapeTimeout, authorization }] = one('PodMonitor').spec.podMetricsEndpoints;
    const token = app.env.find((each: { name: string }) => each.name === 'CLUSTER_ADMIN_TOKEN');
    expect(authorization.credentials).toEqual(token.valueFrom.secretKeyRef);
    expect(port).toBe('admin');
    expect(Number.parseInt(scrapeTimeout, 10)).toBeGreaterThan(SCRAPE_SECONDS);
  });

  it('let only Prometheus reach the admin listener', () => {
    const { ingress, policyTypes } = one('NetworkPolicy').spec;
    const open = ingress.filter((rule: { from?: unknown }) => rule.from === undefined);
    expect(policyTypes).toEqual(['Ingress']);
    expect(open).toEqual(overlay === 'web' ? [{ ports: [{ port: 'http' }] }] : []);
  });

  it('have a directory for the control socket that is not open to others', () => {
    const [{ command, volumeMounts }] = pod.initContainers;
    expect(command).toEqual(['mkdir', '-p', '-m', '700', variable('XDG_RUNTIME_DIR')]);
    expect(volumeMounts).toEqual(app.volumeMounts);
  });
});

describe('the page of Kubernetes', () => {
  it('advises no number of workers with which the options of deploy/ are refused', () => {
    const advised = readDocument('docs/kubernetes.md').matchAll(/CLUSTER_WORKERS=(\w+)/g);
    for (const [, CLUSTER_WORKERS] of advised) {
      const [app] = render('web').find(({ kind }) => kind === 'Deployment')!.spec.template.spec
        .containers;
      const env = { ...variablesOf(app), CLUSTER_WORKERS };
      expect(() => resolveOptions(clusterOptions, env, () => 1)).not.toThrow();
    }
  });
});

describe('the rules of prometheus-adapter', () => {
  const { custom } = parse(
    readFileSync(join(root, 'deploy/kubernetes/prometheus-adapter/rules.yaml'), 'utf8'),
  ).rules as {
    custom: { seriesQuery: string; metricsQuery: string; name: { as: string } }[];
  };

  it('make every metric that the autoscaler asks for', () => {
    const autoscaler = render('web').find(({ kind }) => kind === 'HorizontalPodAutoscaler')!;
    const asked = autoscaler.spec.metrics.map((each: Manifest) => each.pods.metric.name);
    expect(custom.map(({ name }) => name.as)).toEqual(asked);
  });

  it('read only metrics that there are', () => {
    const documented = rowsOf(readDocument('docs/reference/metrics.md')).flatMap(([cell = '']) =>
      [...cell.matchAll(/`(\w+)[`{]/g)].map(([, name]) => name!),
    );
    const read = custom.flatMap((rule) =>
      `${rule.seriesQuery} ${rule.metricsQuery}`.match(/\bnestjs_cluster_\w+/g)!,
    );
    expect(read.filter((name) => !documented.includes(name))).toEqual([]);
  });

  it('give the autoscaler each metric in every app, since it removes no pod without one', () => {
    for (const { seriesQuery, metricsQuery } of custom) {
      expect(seriesQuery).toMatch(/^nestjs_cluster_worker_/);
      // The last alternative reads no metric that only some apps have.
      const [, last = ''] = /(?:^| or )((?:(?! or ).)*)$/s.exec(metricsQuery)!;
      expect(last).toContain('<<.Series>>');
      expect(last).not.toContain('nestjs_cluster_');
    }
  });
});
