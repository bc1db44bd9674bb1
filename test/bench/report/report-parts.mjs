import { dayOf, machineOf, parametersOf, versionsOf } from './facts.mjs';
import { picture } from './picture.mjs';
import { tablesOf } from './result-tables.mjs';

/**
 * The whole report as parts: each is a text of Markdown or a table as data.
 *
 * @param {import('./types.d.mts').Result[]} results
 * @returns {(string | import('./types.d.mts').Table)[]}
 */
export function reportParts(results) {
  return [
    '# Measurements',
    'Written by `npm run bench:report` from the JSON files beside it: do not edit. Numbers are medians of interleaved rounds, with the least and the most of the rounds in small; compare them within a table, not between machines. `× nestjs-cluster` is a row over nestjs-cluster as it is by default.',
    results.map(({ scope, title }) => `- [${title}](#${scope})`).join('\n'),
    ...results.flatMap(scopeParts),
  ];
}

function scopeParts(result) {
  const { scope, title, about, command } = result;
  return [
    `<a id="${scope}"></a>\n\n## ${title}`,
    about,
    `\`\`\`sh\n${command}\n\`\`\``,
    factsOf(result),
    picture(result, ''),
    ...tablesOf(result).flatMap((table) => [table.caption && `### ${table.caption}`, table]),
  ].filter(Boolean);
}

function factsOf(result) {
  return [
    ['Parameters', parametersOf(result)],
    ['Machine', machineOf(result)],
    ['Versions', versionsOf(result)],
    ['Date', dayOf(result)],
  ]
    .filter(([, text]) => text !== '')
    .map(([name, text]) => `- ${name}: ${text}`)
    .join('\n');
}
