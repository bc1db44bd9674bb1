import { markdownTable } from 'markdown-table';
import { inMarkdown, inPlainText } from './cell-text.mjs';

/** Texts and tables as Markdown. */
export function renderMarkdown(parts) {
  const texts = parts.map((part) => {
    if (typeof part === 'string') return part;
    const table = tableOf(part, inMarkdown);
    return part.dense ? `<!-- prettier-ignore -->\n${table}` : table;
  });
  return `${texts.join('\n\n')}\n`;
}

/** A table to read on a terminal. */
export function renderPlainTable(table) {
  const text = tableOf(table, inPlainText);
  return table.caption ? `${table.caption}\n\n${text}` : text;
}

function tableOf({ head, align, rows, dense }, textOf) {
  const cells = rows.map((row) => row.cells.map((cell) => textOf(cell, row)));
  return markdownTable([head, ...cells], { align, alignDelimiters: !dense });
}
