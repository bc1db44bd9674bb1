import { Argument, type Command } from 'commander';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** Adds the command that prints what makes a shell complete the others. */
export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .summary('Prints a script that completes commands and options in a shell')
    .description('Prints a script that completes commands and options in a shell.')
    .addArgument(new Argument('<shell>', 'which').choices(SHELLS))
    .addHelpText('after', '\nExample:\n  source <(nestjs-cluster completion bash)')
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 64))
    .action((shell: (typeof SHELLS)[number]) => {
      process.stdout.write(SCRIPTS[shell](wordsOf(program)));
    });
}

interface Words {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly { readonly long: string; readonly description: string }[];
}

function wordsOf(program: Command): readonly Words[] {
  return program.commands.map((command) => ({
    name: command.name(),
    summary: command.summary() || command.description(),
    options: command.options.flatMap(({ long, description }) =>
      typeof long === 'string' ? [{ long, description }] : [],
    ),
  }));
}

const SCRIPTS: Readonly<Record<(typeof SHELLS)[number], (words: readonly Words[]) => string>> = {
  bash: (words) => `_nestjs_cluster() {
  local word=\${COMP_WORDS[COMP_CWORD]}
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '${words.map(({ name }) => name).join(' ')}' -- "$word"))
    return
  fi
  case \${COMP_WORDS[1]} in
${words.map(({ name, options }) => `    ${name}) COMPREPLY=($(compgen -W '${options.map(({ long }) => long).join(' ')}' -- "$word")) ;;`).join('\n')}
  esac
}
complete -o default -F _nestjs_cluster nestjs-cluster
`,
  zsh: (words) => `#compdef nestjs-cluster
_nestjs_cluster() {
  if (( CURRENT == 2 )); then
    local -a commands=(
${words.map(({ name, summary }) => `      ${quoted(`${name}:${summary}`)}`).join('\n')}
    )
    _describe command commands
    return
  fi
  case $words[2] in
${words.map(({ name, options }) => `    ${name}) compadd -- ${options.map(({ long }) => long).join(' ')} ;;`).join('\n')}
  esac
}
compdef _nestjs_cluster nestjs-cluster
`,
  fish: (words) =>
    words
      .flatMap(({ name, summary, options }) => [
        `complete -c nestjs-cluster -n __fish_use_subcommand -a ${name} -d ${quoted(summary)}`,
        ...options.map(
          ({ long, description }) =>
            `complete -c nestjs-cluster -n '__fish_seen_subcommand_from ${name}' -l ${long.slice(2)} -d ${quoted(description)}`,
        ),
      ])
      .join('\n') + '\n',
};

/** Between single quotes, for a shell; fish knows no other way to end them than the others. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'"'"'`)}'`;
}
