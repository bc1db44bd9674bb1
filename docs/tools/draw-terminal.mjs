// Draws lines of a terminal, with their colours.
const COLUMNS = 116;
const CELL = { width: 7.2, height: 18 };
const PADDING = { x: 16, top: 40, bottom: 14 };
const COLOURS = { 31: '#ff7b72', 32: '#7ee787', 33: '#e3b341' };
const COLOUR_SEQUENCE = new RegExp(`${String.fromCharCode(27)}\\[([\\d;]*)m`);
const TEXT = '#e6edf3';
const DIM = '#8b949e';

/** Lines as a terminal shows them, as an SVG; those that begin with # are the comments. */
export function draw(title, text) {
  const rows = text.flatMap((line) => wrap(cellsOf(line)));
  const width = Math.ceil(2 * PADDING.x + COLUMNS * CELL.width);
  const height = PADDING.top + rows.length * CELL.height + PADDING.bottom;
  const lights = ['#ff5f57', '#febc2e', '#28c840']
    .map((colour, i) => `<circle cx="${20 + 18 * i}" cy="18" r="5.5" fill="${colour}"/>`)
    .join('');
  const drawn = rows.map((row, i) => {
    const y = PADDING.top + (i + 0.75) * CELL.height;
    return runsOf(row)
      .map(({ text, ...rest }) => ({ ...rest, run: text.trimEnd() }))
      .filter(({ run }) => run !== '')
      .map(
        ({ column, run, colour }) =>
          `<text x="${round(PADDING.x + column * CELL.width)}" y="${round(y)}" fill="${colour}" ` +
          `textLength="${round(run.length * CELL.width)}">${escape(run)}</text>`,
      )
      .join('');
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="12" style="white-space: pre">
<title>${title}</title>
<rect width="${width}" height="${height}" rx="8" fill="#0d1117"/>
${lights}
${drawn.join('\n')}
</svg>
`;
}

/** Characters with their colours. */
function cellsOf(line) {
  let colour = line.startsWith('# ') ? '#79c0ff' : TEXT;
  return line.split(COLOUR_SEQUENCE).flatMap((part, i) => {
    if (i % 2 === 0) return [...part].map((character) => ({ character, colour }));
    colour = part === '2' ? DIM : (COLOURS[part] ?? TEXT);
    return [];
  });
}

function wrap(cells) {
  const rows = [];
  for (let at = 0; at < cells.length; at += COLUMNS) rows.push(cells.slice(at, at + COLUMNS));
  return rows;
}

/** Neighbours of one colour. */
function runsOf(cells) {
  const runs = [];
  for (const [column, { character, colour }] of cells.entries()) {
    const last = runs.at(-1);
    const follows = last?.colour === colour && last.column + last.text.length === column;
    // A renderer may drop spaces at the beginning of a text, and all but one in the middle.
    if (follows && !(character === ' ' && last.text.endsWith(' '))) last.text += character;
    else if (character !== ' ') runs.push({ column, text: character, colour });
  }
  return runs;
}

function escape(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function round(value) {
  return Math.round(value * 100) / 100;
}
