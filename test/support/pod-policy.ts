import type { Manifest } from './kustomization.js';

interface Container {
  readonly name: string;
  readonly image: string;
  readonly resources?: { requests?: Record<string, string>; limits?: Record<string, string> };
  readonly securityContext?: {
    allowPrivilegeEscalation?: boolean;
    privileged?: boolean;
    readOnlyRootFilesystem?: boolean;
    runAsUser?: number;
    capabilities?: { drop?: string[]; add?: string[] };
  };
  readonly [probe: `${string}Probe`]: { httpGet?: { path: string; port: string } } | undefined;
}

interface PodSpec {
  readonly automountServiceAccountToken?: boolean;
  readonly hostNetwork?: boolean;
  readonly hostPID?: boolean;
  readonly securityContext?: {
    runAsNonRoot?: boolean;
    runAsUser?: number;
    seccompProfile?: { type: string };
  };
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly volumes?: readonly { readonly hostPath?: unknown }[];
}

/** The restricted profile of the pod security standards, and more; each rule by what breaks it. */
const OF_POD: Readonly<Record<string, (pod: PodSpec) => boolean>> = {
  'may run as root': ({ securityContext: of }) => !(of?.runAsNonRoot === true && of.runAsUser! > 0),
  'has no seccomp profile': (pod) => pod.securityContext?.seccompProfile?.type !== 'RuntimeDefault',
  'has a token of the API': (pod) => pod.automountServiceAccountToken !== false,
  'shares namespaces of the host': (pod) => (pod.hostNetwork ?? pod.hostPID) === true,
  'mounts a path of the host': ({ volumes = [] }) => volumes.some((each) => 'hostPath' in each),
};

const OF_EACH_CONTAINER: Readonly<Record<string, (container: Container) => boolean>> = {
  'may gain privileges': (of) => of.securityContext?.allowPrivilegeEscalation !== false,
  'is privileged': (of) => of.securityContext?.privileged === true,
  'runs as root': (of) => of.securityContext?.runAsUser === 0,
  'writes to its root': (of) => of.securityContext?.readOnlyRootFilesystem !== true,
  'keeps capabilities': ({ securityContext: of }) =>
    of?.capabilities?.drop?.[0] !== 'ALL' || of.capabilities.add !== undefined,
  'has no requests': ({ resources }) => !(resources?.requests?.cpu && resources.requests.memory),
  'has no limits': ({ resources }) => !(resources?.limits?.cpu && resources.limits.memory),
  'has no tag, or the latest': ({ image }) => !/:(?!latest$)[\w.-]+$/.test(image),
};

const OF_A_SERVER: Readonly<Record<string, (container: Container) => boolean>> = {
  'has no startup probe': (of) => of.startupProbe?.httpGet?.port !== 'http',
  'has no readiness probe': (of) => of.readinessProbe?.httpGet?.path !== '/health/ready',
  'has no liveness probe': (of) => of.livenessProbe?.httpGet?.path !== '/health/live',
};

/** What is wrong with the pods of a Deployment, one line each. */
export function policyViolations(deployment: Manifest): string[] {
  const pod = deployment.spec.template.spec as PodSpec;
  const { containers, initContainers = [] } = pod;
  return [
    ...broken(OF_POD, pod).map((rule) => `the pod ${rule}`),
    ...[...initContainers, ...containers].flatMap((each) => of(each, OF_EACH_CONTAINER)),
    ...containers.flatMap((each) => of(each, OF_A_SERVER)),
  ];
}

function of(container: Container, rules: typeof OF_EACH_CONTAINER): string[] {
  return broken(rules, container).map((rule) => `${container.name} ${rule}`);
}

function broken<T>(rules: Readonly<Record<string, (subject: T) => boolean>>, subject: T): string[] {
  return Object.keys(rules).filter((rule) => rules[rule]!(subject));
}
