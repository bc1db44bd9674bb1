import { NOTHING } from './format.mjs';

/**
 * A cell in Markdown: rows of nestjs-cluster in bold, the spread in small.
 *
 * @param {import('./types.d.mts').Cell} cell
 * @param {{ ours: boolean }} row
 */
export function inMarkdown({ text, spread }, { ours }) {
  const escaped = text.replaceAll('|', '\\|').replaceAll('\n', ' ');
  const strong = ours && text !== '' && text !== NOTHING ? `**${escaped}**` : escaped;
  return spread === undefined ? strong : `${strong} <sub>${spread}</sub>`;
}

/**
 * A cell as one reads it on a terminal, without markup.
 *
 * @param {import('./types.d.mts').Cell} cell
 */
export function inPlainText({ text, spread }) {
  return spread === undefined ? text : `${text} (${spread})`;
}
