import { readFileSync, writeFileSync } from 'node:fs';
import { format, resolveConfig } from 'prettier';

const BEGIN = '<!-- bench:begin -->';
const END = '<!-- bench:end -->';

/** Puts Markdown between the markers of a page, formatted as `npm run lint` wants it. */
export async function writeBlock(path, markdown) {
  await rewrite(path, (page) => replaceBlock(page, markdown, path));
}

/**
 * Writes what a change makes of a page, formatted; a page that stays is not written.
 *
 * @param {string} path
 * @param {(page: string) => string} change
 */
export async function rewrite(path, change) {
  const page = readFileSync(path, 'utf8');
  const config = await resolveConfig(path);
  const formatted = await format(change(page), { ...config, filepath: path });
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
