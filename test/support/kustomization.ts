import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

/** An object of the Kubernetes API, as it stands in a manifest. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { name: string; labels?: Record<string, string> };
  // oxlint-disable-next-line typescript/no-explicit-any -- a schema says what it is
  [key: string]: any;
}

interface Kustomization {
  readonly resources?: readonly string[];
  readonly nameSuffix?: string;
  readonly labels?: readonly Labels[];
  readonly patches?: readonly { readonly target: { readonly kind: string }; patch: string }[];
}

interface Labels {
  readonly pairs: Record<string, string>;
  readonly includeSelectors: true;
  readonly fields: readonly { readonly kind: string; readonly path: string }[];
}

/** Kinds whose names others refer to, and where. */
const REFERENCES: Readonly<Record<string, readonly string[]>> = {
  HorizontalPodAutoscaler: ['spec', 'scaleTargetRef'],
};

/** The paths where kustomize puts labels with `includeSelectors`; `*` is any element of a list. */
const SELECTORS: Readonly<Record<string, readonly string[]>> = {
  Deployment: [
    'spec/selector/matchLabels',
    'spec/template/metadata/labels',
    'spec/template/spec/topologySpreadConstraints/*/labelSelector/matchLabels',
  ],
  Service: ['spec/selector'],
  PodDisruptionBudget: ['spec/selector/matchLabels'],
  NetworkPolicy: ['spec/podSelector/matchLabels'],
};

const KNOWN = ['apiVersion', 'kind', 'resources', 'nameSuffix', 'labels', 'patches'];

/**
 * Does what `kubectl kustomize` does with a folder, but only for the few fields that our folders
 * use. The kustomize in Debian's kubectl is too old for these fields.
 *
 * @throws Error if the folder uses any other field.
 */
export function renderKustomization(folder: string): Manifest[] {
  const kustomization = parse(
    readFileSync(join(folder, 'kustomization.yaml'), 'utf8'),
  ) as Kustomization;
  const unknown = Object.keys(kustomization).filter((key) => !KNOWN.includes(key));
  if (unknown.length > 0) throw new Error(`${folder}: cannot render ${unknown.join(', ')}`);
  const { resources = [], nameSuffix = '', labels = [], patches = [] } = kustomization;
  const manifests = resources.flatMap((resource) => manifestsAt(join(folder, resource)));
  for (const { target, patch } of patches) {
    for (const manifest of manifests.filter(({ kind }) => kind === target.kind)) {
      for (const operation of parse(patch) as Operation[]) apply(manifest, operation);
    }
  }
  const deployments = manifests
    .filter(({ kind }) => kind === 'Deployment')
    .map(({ metadata: { name } }) => name);
  for (const manifest of manifests) {
    manifest.metadata.name += nameSuffix;
    const path = REFERENCES[manifest.kind];
    const reference = path && (at(manifest, path) as { name: string });
    if (reference && deployments.includes(reference.name)) reference.name += nameSuffix;
    for (const each of labels) addLabels(manifest, each);
  }
  return manifests;
}

function manifestsAt(path: string): Manifest[] {
  if (statSync(path).isDirectory()) return renderKustomization(path);
  return [parse(readFileSync(path, 'utf8')) as Manifest];
}

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly value: unknown;
}

/** RFC 6902, of which `add` to the end of a list is used. */
function apply(manifest: Manifest, { op, path, value }: Operation): void {
  const [, ...steps] = path.split('/');
  const last = steps.pop();
  const list = at(manifest, steps);
  if (op !== 'add' || last !== '-' || !Array.isArray(list)) {
    throw new Error(`cannot apply ${op} ${path} to ${manifest.kind}`);
  }
  list.push(value);
}

function addLabels({ kind, metadata, ...rest }: Manifest, { pairs, fields }: Labels): void {
  metadata.labels = { ...metadata.labels, ...pairs };
  const paths = [
    ...(SELECTORS[kind] ?? []),
    ...fields.filter((field) => field.kind === kind).map(({ path }) => path),
  ];
  for (const path of paths) {
    for (const target of allAt(rest, path.split('/'))) Object.assign(target, pairs);
  }
}

function allAt(value: object, [step, ...rest]: readonly string[]): object[] {
  if (step === undefined) return [value];
  const inner = step === '*' ? (value as object[]) : [at(value, [step]) as object];
  return inner.flatMap((each) => allAt(each, rest));
}

function at(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, step) => (inner as Record<string, unknown>)[step], value);
}
