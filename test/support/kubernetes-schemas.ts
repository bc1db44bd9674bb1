import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv, type ValidateFunction } from 'ajv';
import type { Manifest } from './kustomization.js';

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
export function schemaErrors(manifest: Manifest): string[] {
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
