// Checks the manifests and the Dockerfile of deploy/ by kubernetes-validate and checkov.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { pythonPackages } from '../install.mjs';
import { Verdict } from '../verdict.mjs';

const root = join(import.meta.dirname, '../../..');
const bin = pythonPackages('deploy', ['kubernetes-validate==1.37.0', 'checkov==3.3.30']);

const NAMESPACE = 'the user chooses the namespace: kubectl apply --namespace';
const verdict = new Verdict({
  'checkov CKV_K8S_15 Deployment.default.app':
    'the image has the tag of a release, which does not change',
  'checkov CKV_K8S_21 Deployment.default.app': NAMESPACE,
  'checkov CKV_K8S_21 Service.default.app': NAMESPACE,
  'checkov CKV_K8S_35 Deployment.default.app': 'apps read DATABASE_URL from the environment',
  'checkov CKV_K8S_40 Deployment.default.app': 'Node images have the user `node`, which is 1000',
  'checkov CKV_K8S_43 Deployment.default.app': 'the image is a placeholder, which has no digest',
});

/** Kinds of Kubernetes itself. CI checks the others by schemas of their projects. */
const isBuiltIn = ({ apiVersion }) =>
  /^(v1|apps\/v1|(autoscaling|policy|[\w.]+\.k8s\.io)\/v\d)$/.test(apiVersion);
const folder = join(root, 'deploy/kubernetes');
for (const file of readdirSync(folder, { recursive: true }).filter((each) =>
  each.endsWith('.yaml'),
)) {
  const manifest = parse(readFileSync(join(folder, file), 'utf8'));
  if (!isBuiltIn(manifest)) continue;
  const args = ['--strict', join(folder, file)];
  const { status, stdout, stderr } = spawnSync(join(bin, 'kubernetes-validate'), args, {
    encoding: 'utf8',
  });
  const isChecked = status === 0 && `${stdout}${stderr}`.includes('passed');
  verdict.add(`kubernetes-validate ${file}`, isChecked ? undefined : `${stdout}${stderr}`);
}

const frameworks = ['--framework', 'kubernetes', 'dockerfile'];
const args = ['--directory', 'deploy', ...frameworks, '--output', 'json', '--skip-download'];
const { stdout, stderr } = spawnSync(join(bin, 'checkov'), args, {
  cwd: root,
  encoding: 'utf8',
  maxBuffer: 2 ** 28,
});
if (!stdout.startsWith('[')) throw new Error(stdout + stderr);
for (const { results, summary } of JSON.parse(stdout)) {
  for (const [n, { check_id, resource }] of results.passed_checks.entries()) {
    verdict.add(`checkov ${check_id} ${resource} (${n})`);
  }
  for (const { check_id, check_name, resource } of results.failed_checks) {
    verdict.add(`checkov ${check_id} ${resource}`, check_name);
  }
  if (summary.parsing_errors > 0)
    verdict.add('checkov reads all files', `${summary.parsing_errors} errors`);
}
verdict.end();
