import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import * as v from 'valibot';
import { parse } from 'yaml';
import { clusterOptions, resolveOptions } from '../../src/contract/options/resolve.js';

const root = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');

const [versions, ...stages] = read('deploy/Dockerfile').split(/^FROM /m) as [string, ...string[]];
const images = stages.map((stage) => stage.slice(0, stage.indexOf('\n')));

/** Keyword and arguments of a stage's instructions, its FROM left out. Each has one line. */
const instructionsOf = (stage: string) =>
  stage
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const [, keyword, text] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
      return keyword === undefined ? [] : [{ keyword, text: text! }];
    });

const last = instructionsOf(stages.at(-1)!);
const textOf = (keyword: string) =>
  last.filter((each) => each.keyword === keyword).map(({ text }) => text);

/** The words of the `CMD` in a `HEALTHCHECK`. */
const wordsOf = (text: string) => JSON.parse(text.slice(text.indexOf('['))) as string[];

describe('deploy/Dockerfile', () => {
  it('is built on a Node that the package allows, by a tag and not the latest', () => {
    const [major] = /(?<=^ARG NODE=)\d+$/m.exec(versions)!;
    const { engines } = JSON.parse(read('package.json')) as { engines: { node: string } };
    expect(engines.node.match(/\d+(?=\.\d+\.\d+)/g)).toContain(major);
    // oxlint-disable-next-line no-template-curly-in-string
    const image = 'node:${NODE}-slim';
    expect(images).toEqual([`${image} AS build`, `${image} AS packages`, image]);
  });

  it('runs as a user that a kubelet can tell from root', () => {
    const deployment = parse(read('deploy/kubernetes/base/deployment.yaml'));
    const { runAsUser, runAsGroup } = deployment.spec.template.spec.securityContext;
    expect(textOf('USER')).toEqual([`${runAsUser}:${runAsGroup}`]);
  });

  it('makes the primary process 1, which gets the signals', () => {
    expect(textOf('CMD')).toEqual(['["node", "dist/main.js"]']);
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
      const { port } = v.parse(clusterOptions, {});
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
});
