import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { commandLine, printed } from '../support/command-line-here.js';

describe('nestjs-cluster', () => {
  it('lists its commands, without those of the tools', async () => {
    const help = await printed('--help');

    expect(help).toContain('Usage: nestjs-cluster');
    for (const command of ['ps', 'top', 'reload', 'stack', 'cpu-profile']) {
      expect(help).toMatch(new RegExp(`^ +${command}\\b`, 'm'));
    }
    expect(help).not.toContain('doctor');
  });

  it('knows its version', async () => {
    const manifest = join(import.meta.dirname, '../../../package.json');
    const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string };

    expect(await printed('--version')).toBe(`${version}\n`);
  });

  it('shows its commands as an error if none is given', async () => {
    const { code, stdout, stderr } = await commandLine();

    expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
    expect(stderr).toBe(await printed('--help'));
  });

  it.each([['haproxy'], ['--nope'], ['\u001b[2J'], ['reload', '--\u001b]0;owned\u0007']])(
    'refuses %s as wrong usage, without what a terminal would obey',
    async (...args) => {
      const { code, stdout, stderr } = await commandLine(...args);

      expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
      expect(stderr).toMatch(/^error: .*--help/s);
      // oxlint-disable-next-line no-control-regex -- what a terminal would obey
      expect(stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
    },
  );

  it.each(['doctor', 'advise', 'tune', 'dashboard', 'nginx', 'iptables'])(
    'names the package that has %s now',
    async (command) => {
      expect(await commandLine(command, '--json', '--', 'main.js')).toEqual({
        code: 64,
        stdout: '',
        stderr: `${command} has moved; run npx @nestjs-cluster/tools ${command}\n`,
      });
    },
  );
});
