import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import {
  DockerfileParser,
  type From,
  type Instruction,
  type JSONInstruction,
} from 'dockerfile-ast';
import { describe, expect, it } from 'vitest';
import * as v from 'valibot';
import { parse } from 'yaml';
import { clusterOptionsSchema } from '../../src/contract/options/check/options.schema.js';
import { resolveOptions } from '../../src/contract/options/index.js';

const root = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');

const dockerfile = DockerfileParser.parse(read('deploy/Dockerfile'));
const instructions = dockerfile.getInstructions();
const froms = dockerfile.getFROMs();

/** Keyword and arguments of a stage's instructions, its FROM left out. */
function stage(from: From): { keyword: string; text: string; instruction: Instruction }[] {
  const start = instructions.indexOf(from) + 1;
  const next = instructions.findIndex((each, i) => i >= start && each.getKeyword() === 'FROM');
  return instructions.slice(start, next === -1 ? undefined : next).map((instruction) => ({
    keyword: instruction.getKeyword(),
    text: instruction.toString().slice(instruction.getKeyword().length).trim(),
    instruction,
  }));
}

const last = stage(froms.at(-1)!);
const of = (keyword: string) => last.filter((each) => each.keyword === keyword);
const textOf = (keyword: string) => of(keyword).map(({ text }) => text);

/** The words of a `CMD`, or of the `CMD` in a `HEALTHCHECK`, in the form with brackets. */
const wordsOf = (text: string) => JSON.parse(text.slice(text.indexOf('['))) as string[];

describe('deploy/Dockerfile', () => {
  it('is built on a Node that the package allows, by a tag and not the latest', () => {
    const [major] = instructions[0]!.getRawArgumentsContent()!.match(/(?<=^NODE=)\d+$/)!;
    const { engines } = JSON.parse(read('package.json')) as { engines: { node: string } };
    expect(engines.node.match(/\d+(?=\.\d+\.\d+)/g)).toContain(major);
    expect(froms.map((from) => from.getImage())).toEqual(
      froms.map(() => 'node:${NODE}-slim'), // oxlint-disable-line no-template-curly-in-string
    );
  });

  it('has stages for the build and for the packages, and takes only what it runs from them', () => {
    expect(froms.map((from) => from.getBuildStage())).toEqual(['build', 'packages', null]);
    expect(textOf('COPY')).toEqual([
      '--from=packages /app/node_modules node_modules',
      '--from=build /app/dist dist',
      'package.json ./',
    ]);
  });

  it.each(froms.slice(0, -1).map((from) => [from.getBuildStage()!, from] as const))(
    'installs anew only after a change of the packages: %s',
    (_, from) => {
      const [workdir, copy, install] = stage(from);
      expect([workdir!.text, copy!.text]).toEqual(['/app', 'package.json package-lock.json ./']);
      expect(install!.text).toMatch(/^--mount=type=cache,target=\/root\/\.npm npm ci /);
    },
  );

  it('has no packages of the development in the image', () => {
    expect(stage(froms[1]!).at(-1)!.text).toContain('--omit=dev');
    expect(textOf('ENV')).toContain('NODE_ENV=production');
  });

  it('runs as a user that a kubelet can tell from root', () => {
    const deployment = parse(read('deploy/kubernetes/base/deployment.yaml'));
    const { runAsUser, runAsGroup } = deployment.spec.template.spec.securityContext;
    expect(textOf('USER')).toEqual([`${runAsUser}:${runAsGroup}`]);
  });

  it('leaves all files of the image to root', () => {
    expect(textOf('RUN')).toEqual([]);
    expect(textOf('COPY').filter((text) => text.includes('--chown'))).toEqual([]);
  });

  it('makes the primary process 1, which gets the signals', () => {
    const [command] = of('CMD');
    expect((command!.instruction as JSONInstruction).getOpeningBracket()).not.toBeNull();
    expect(wordsOf(command!.text)).toEqual(['node', 'dist/main.js']);
    expect(textOf('ENTRYPOINT')).toEqual([]);
  });

  describe('its health check', () => {
    const [node, flag, script = ''] = wordsOf(textOf('HEALTHCHECK')[0]!);
    const variables = Object.fromEntries(
      textOf('ENV').flatMap((text) => text.split(' ').map((each) => each.split('='))),
    ) as Record<string, string>;

    /** The URL that the script asks with these variables. */
    const asked = (env: Record<string, string>): string => {
      let url = '';
      const fetch = (to: string) => {
        url = to;
        return Promise.resolve({ ok: true });
      };
      runInNewContext(script, { process: { env: { ...variables, ...env }, exit() {} }, fetch });
      return url;
    };

    it('asks by default where an app with the defaults listens, without a shell', () => {
      const { port } = v.parse(clusterOptionsSchema, {});
      expect([node, flag]).toEqual(['node', '-e']);
      expect(asked({})).toBe(`http://127.0.0.1:${port}/health/ready`);
      expect(textOf('EXPOSE')).toEqual(['$PORT']);
    });

    it('follows the port and the path of the app', () => {
      expect(asked({ PORT: '8080', READY_PATH: '/internal/health/ready' })).toBe(
        'http://127.0.0.1:8080/internal/health/ready',
      );
    });
  });
});

describe('deploy/.dockerignore', () => {
  it('keeps out of the image what the build makes, and secrets', () => {
    const lines = read('deploy/.dockerignore').split('\n');
    expect(lines).toEqual(expect.arrayContaining(['node_modules', 'dist', '.git', '.env*']));
  });
});

describe('deploy/compose.yaml', () => {
  const { app } = parse(read('deploy/compose.yaml')).services;

  it.each([
    ['the defaults', {}],
    ['a lame duck of 10 s', { CLUSTER_SHUTDOWN_LAME_DUCK_MS: '10000' }],
  ])('waits for a stop to end with %s', (_, variables) => {
    const { shutdown } = resolveOptions({}, { ...app.environment, ...variables });
    const stopMs = shutdown.lameDuckMs + shutdown.drainTimeoutMs + shutdown.killTimeoutMs;
    expect(app.stop_grace_period).toMatch(/^\d+s$/);
    expect(Number.parseInt(app.stop_grace_period, 10) * 1_000).toBeGreaterThanOrEqual(
      stopMs + 5_000,
    );
  });

  it('runs again after a restart of the Docker daemon', () => {
    // `on-failure` does not: https://docs.docker.com/engine/containers/start-containers-automatically/
    expect(['always', 'unless-stopped']).toContain(app.restart);
  });

  it('gives the app no more than it needs', () => {
    expect(app).toMatchObject({
      read_only: true,
      tmpfs: ['/tmp'],
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
    });
    expect(app).not.toHaveProperty('privileged');
  });
});
