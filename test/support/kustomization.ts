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

/**
 * The manifests that the kustomization of a folder lists, with what its patches add to lists. Labels
 * and suffixes of names are left out: the kustomize in Debian's kubectl is too old to add them.
 */
export function manifestsIn(path: string): Manifest[] {
  if (!statSync(path).isDirectory()) return [parse(readFileSync(path, 'utf8')) as Manifest];
  const { resources, patches = [] } = parse(
    readFileSync(join(path, 'kustomization.yaml'), 'utf8'),
  ) as { resources: string[]; patches?: { target: { kind: string }; patch: string }[] };
  const manifests = resources.flatMap((resource) => manifestsIn(join(path, resource)));
  for (const { target, patch } of patches) {
    const manifest = manifests.find(({ kind }) => kind === target.kind);
    for (const operation of parse(patch) as { path: string; value: unknown }[]) {
      const steps = operation.path.split('/').slice(1, -1);
      const list = steps.reduce<unknown>(
        (inner, step) => (inner as Record<string, unknown>)[step],
        manifest,
      );
      (list as unknown[]).push(operation.value);
    }
  }
  return manifests;
}
