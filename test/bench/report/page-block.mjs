import { readFileSync, writeFileSync } from 'node:fs';
import { format, resolveConfig } from 'prettier';

const BEGIN = '<!-- bench:begin -->';
const END = '<!-- bench:end -->';

/** Puts Markdown between the markers of a page, formatted as `npm run lint` wants it. */
export async function writeBlock(path, markdown) {
  const page = readFileSync(path, 'utf8');
  const replaced = replaceBlock(page, markdown, path);
  const config = await resolveConfig(path);
  const formatted = await format(replaced, { ...config, filepath: path });
  if (formatted !== page) writeFileSync(path, formatted);
}

export function replaceBlock(page, markdown, path) {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END, begin);
  if (begin === -1 || end === -1) {
    throw new Error(
      `${path} has no place for the figures: put ${BEGIN} and ${END} where they belong`,
    );
  }
  return `${page.slice(0, begin + BEGIN.length)}\n\n${markdown.trim()}\n\n${page.slice(end)}`;
}
