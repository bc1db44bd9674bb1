// Finds the sentences in comments and documents that have to be read twice, as far as a machine can:
// `node test/repo/voice.mjs [file or folder ...]`, without any all that git tracks.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Each pattern with its remedy. They are tried on one sentence at a time. */
const PATTERNS = [
  [/^(?:Of|Who|Whoever|Whom|Whose|Those|That which) /, 'name the subject first'],
  [
    /^(?:What|Where) (?!(?:is|are|do|does|did|happens|to|if|else|now)\b)[^?]*[^?]$/,
    'name the subject first',
  ],
  [/\b(?:that|those) of (?!which)/i, 'repeat the noun'],
  [
    /(?<!\b[Tt]here )\b(?:is|are|was|were|be) no (?!(?:longer|more|fewer|less|different|better)\b)[a-z]/,
    'say "is not a"',
  ],
];

const CHECKED = ['*.ts', '*.cts', '*.mjs', '*.cjs', '*.js', '*.yaml', '*.yml', '*.md'];
const WRITTEN_ONCE = ['test/bench/results', 'CHANGELOG.md', '**/fixtures/**', 'docs/assets'];

/** @returns what to do about a sentence, or `undefined` if nothing is wrong with it. */
export function remedyFor(sentence) {
  return PATTERNS.find(([pattern]) => pattern.test(sentence))?.[1];
}

/** @returns {{ line: number, sentence: string }[]} the sentences of a program's comments or a document. */
export function sentencesIn(text, isDocument) {
  return (isDocument ? paragraphsOf(text) : commentsOf(text)).flatMap(({ line, prose }) =>
    prose
      .replaceAll(
        /`[^`]*`|\{@link [^}]*\}|\[([^\]]*)\]\([^)]*\)/g,
        (code, label) => label ?? 'code',
      )
      .split(/(?<=[.!?:;])\s+(?=[A-Z])/)
      .map((sentence) => ({ line, sentence: sentence.trim() }))
      .filter(({ sentence }) => sentence.includes(' ')),
  );
}

/** A block is what follows each other without an empty line or a tag; a trailing comment is one of its own. */
function commentsOf(text) {
  const blocks = [];
  let open;
  for (const [index, raw] of text.split('\n').entries()) {
    const whole = /^\s*(?:\/\/|\/?\*+|#)(?:$|\s)(.*?)(\*\/)?$/.exec(raw);
    const prose = whole?.[1] ?? / \/\/ (.*)$/.exec(raw)?.[1] ?? '';
    if (
      open === undefined ||
      open.prose === '' ||
      prose === '' ||
      prose.startsWith('@') ||
      !whole
    ) {
      open = { line: index + 1, prose: '' };
      blocks.push(open);
    }
    open.prose += ` ${prose.replace(/^@param \w+|^@\w+/, '')}`.trimEnd();
    if (!whole || whole[2] !== undefined) open = undefined;
  }
  return blocks;
}

/** Each line and each cell of a table is a paragraph. */
function paragraphsOf(text) {
  return text
    .replaceAll(/^(```|~~~)[^]*?^\1|<!--[^]*?-->/gm, (code) => code.replaceAll(/[^\n]/g, ''))
    .split('\n')
    .flatMap((line, index) =>
      line.startsWith('#')
        ? []
        : line.split('|').map((cell) => ({
            line: index + 1,
            prose: cell.replace(/^\s*(?:[-*>]|\d+\.)\s+/, '').replaceAll('**', ''),
          })),
    );
}

function main(named) {
  const tracked = execFileSync(
    'git',
    ['ls-files', ...CHECKED, ...WRITTEN_ONCE.map((path) => `:(exclude,glob)${path}`)],
    { encoding: 'utf8' },
  );
  const isNamed = (file) => named.length === 0 || named.some((path) => file.startsWith(path));
  const files = tracked.split('\n').filter((file) => file !== '' && isNamed(file));
  const found = files.flatMap((file) =>
    sentencesIn(readFileSync(file, 'utf8'), file.endsWith('.md')).flatMap(({ line, sentence }) => {
      const remedy = remedyFor(sentence);
      return remedy === undefined ? [] : [`${file}:${line}: ${remedy}: ${sentence}`];
    }),
  );
  for (const each of found) console.error(each);
  if (found.length > 0) console.error(`${found.length} sentences have to be read twice`);
  process.exitCode = found.length > 0 ? 1 : 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main(process.argv.slice(2));
