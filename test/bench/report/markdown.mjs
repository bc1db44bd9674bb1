import { markdownTable } from 'markdown-table';
import { inMarkdown, inPlainText } from './cell-text.mjs';

/** Texts and tables as Markdown. */
export function renderMarkdown(parts) {
  const texts = parts.map((part) => (typeof part === 'string' ? part : tableOf(part, inMarkdown)));
  return `${texts.join('\n\n')}\n`;
}

/** A table to read on a terminal. */
export function renderPlainTable(table) {
  const text = tableOf(table, inPlainText);
  return table.caption ? `${table.caption}\n\n${text}` : text;
}

function tableOf({ head, align, rows }, textOf) {
  const cells = rows.map((row) => row.cells.map((cell) => textOf(cell, row)));
  return markdownTable([head, ...cells], { align });
}
