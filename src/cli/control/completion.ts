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
    .action((shell: (typeof SHELLS)[number]) => {
      process.stdout.write(SCRIPTS[shell](wordsOf(program)));
    });
}

interface Words {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly {
    readonly long: string;
    readonly description: string;
    readonly takesValue: boolean;
  }[];
  /** What its argument may be, where that is known. */
  readonly choices: readonly string[];
}

function wordsOf(program: Command): readonly Words[] {
  return program.commands.map((command) => ({
    name: command.name(),
    summary: command.summary() || command.description(),
    options: command.options.flatMap(({ long, description, required }) =>
      typeof long === 'string' ? [{ long, description, takesValue: required }] : [],
    ),
    choices: command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []),
  }));
}

/** Options where the word begins with a dash; else what the argument may be, or a file. */
const SCRIPTS: Readonly<Record<(typeof SHELLS)[number], (words: readonly Words[]) => string>> = {
  bash: (words) => `_nestjs_cluster() {
  local word=\${COMP_WORDS[COMP_CWORD]} options= choices=
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '${words.map(({ name }) => name).join(' ')}' -- "$word"))
    return
  fi
  case \${COMP_WORDS[1]} in
${words.map((each) => `    ${each.name}) options='${optionsOf(each)}' choices='${each.choices.join(' ')}' ;;`).join('\n')}
  esac
  case $word in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) COMPREPLY=($(compgen -W "$choices" -- "$word")) ;;
  esac
}
complete -o default -F _nestjs_cluster nestjs-cluster
`,
  zsh: (words) => `#compdef nestjs-cluster
_nestjs_cluster() {
  local -a commands options choices
  if (( CURRENT == 2 )); then
    commands=(
${words.map(({ name, summary }) => `      ${quoted(`${name}:${summary}`)}`).join('\n')}
    )
    _describe command commands
    return
  fi
  case $words[2] in
${words.map((each) => `    ${each.name}) options=(${optionsOf(each)}) choices=(${each.choices.join(' ')}) ;;`).join('\n')}
  esac
  if [[ $PREFIX == -* ]]; then
    compadd -- $options
  elif (( $#choices )); then
    compadd -- $choices
  else
    _files
  fi
}
if [[ $funcstack[1] == _nestjs-cluster ]]; then
  _nestjs_cluster # a file of $fpath, which is run at the first completion
else
  compdef _nestjs_cluster nestjs-cluster
fi
`,
  fish: (words) =>
    words
      .flatMap(({ name, summary, options, choices }) => [
        `complete -c nestjs-cluster -n __fish_use_subcommand -f -a ${name} -d ${quoted(summary)}`,
        ...(choices.length > 0
          ? [`complete -c nestjs-cluster -n ${ofCommand(name)} -f -a '${choices.join(' ')}'`]
          : []),
        ...options.map(
          ({ long, description, takesValue }) =>
            `complete -c nestjs-cluster -n ${ofCommand(name)} -l ${long.slice(2)}${takesValue ? ' -r' : ''} -d ${quoted(description)}`,
        ),
      ])
      .join('\n') + '\n',
};

function optionsOf({ options }: Words): string {
  return [...options.map(({ long }) => long), '--help'].join(' ');
}

function ofCommand(name: string): string {
  return `'__fish_seen_subcommand_from ${name}'`;
}

/** Between single quotes, for a shell; fish knows no other way to end them than the others. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'"'"'`)}'`;
}
