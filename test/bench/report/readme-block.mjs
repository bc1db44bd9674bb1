import { readFileSync, writeFileSync } from 'node:fs';
import { format, resolveConfig } from 'prettier';

const BEGIN = '<!-- bench:begin -->';
const END = '<!-- bench:end -->';

/** Puts Markdown between the markers of a README, formatted as `npm run lint` wants it. */
export async function writeReadmeBlock(path, markdown) {
  const readme = readFileSync(path, 'utf8');
  const replaced = replaceBlock(readme, markdown);
  const config = await resolveConfig(path);
  const formatted = await format(replaced, { ...config, filepath: path });
  if (formatted !== readme) writeFileSync(path, formatted);
}

export function replaceBlock(readme, markdown) {
  const begin = readme.indexOf(BEGIN);
  const end = readme.indexOf(END, begin);
  if (begin === -1 || end === -1) {
    throw new Error(
      `README.md has no place for the figures: put ${BEGIN} and ${END} where they belong`,
    );
  }
  return `${readme.slice(0, begin + BEGIN.length)}\n\n${markdown.trim()}\n\n${readme.slice(end)}`;
}
