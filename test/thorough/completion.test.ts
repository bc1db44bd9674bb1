import { join } from 'node:path';
import { expect, it } from 'vitest';
import { printed } from '../support/command-line.js';
import { plainEnvironment, runCommand } from '../support/run-command.js';

// zsh and fish are on few machines: their scripts were tried by hand.
it('completes commands, options and arguments in bash', async () => {
  const script = await printed('completion', 'bash');
  const completed = async (...words: string[]) => {
    const { code, stdout, stderr } = await runCommand('bash', ['--norc'], {
      cwd: join(import.meta.dirname, '..'),
      env: plainEnvironment(),
      input: `${script}
        COMP_WORDS=(nestjs-cluster ${words.map((word) => `'${word}'`).join(' ')}) COMP_CWORD=${words.length}
        _nestjs_cluster
        echo "\${COMPREPLY[*]}"`,
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return stdout.trim();
  };

  expect(await completed('re')).toBe('reload restart');
  expect(await completed('cpu-profile', '1', '--')).toBe(
    '--json --cluster --output --seconds --help',
  );
  expect(await completed('completion', '')).toBe('bash zsh fish');
  // Then it is bash's turn, which completes files.
  expect(await completed('doctor', '')).toBe('');
});
