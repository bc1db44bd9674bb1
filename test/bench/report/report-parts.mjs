import { REAL_RATIO } from '../comparisons/window-statistics.mjs';
import { MAX_SHARE } from '../disturbances.mjs';
import { aheadList } from './ahead.mjs';
import { dayOf, machineOf, parametersOf, versionsOf } from './facts.mjs';
import { picture } from './picture.mjs';
import { tablesOf } from './result-tables.mjs';

const BY_WINDOWS = `All systems were up at once in tables that show the least CPU per request beside the median. Windows of load went round among them, in turn forwards and backwards, over several starts. Each window is compared with the window of the baseline next to it: a ratio is the median of these comparisons, with their lower quartile and their least beside it; \`least × least\` is the ratio of the two minima. A difference is told if the minima, the lower quartiles, the medians and that ratio agree by more than ${REAL_RATIO * 100} %, and each start points the same way. The column shows the smallest of the four. Everything else is "no difference". A window in which others used more than ${MAX_SHARE * 100} % of the machine was discarded.`;

/**
 * The whole report as parts: each is a text of Markdown or a table as data.
 *
 * @param {import('./types.d.mts').Result[]} results
 * @returns {(string | import('./types.d.mts').Table)[]}
 */
export function reportParts(results) {
  return [
    '# Measurements',
    'Written by `npm run bench:report` from the JSON files beside it: do not edit. Numbers are medians of interleaved rounds, with the least and the most of the rounds in small. Requests sent and lost are sums of all rounds; compare them within a table, not between machines. `× nestjs-cluster` is the median of the ratios of each round to nestjs-cluster as it is by default, so it may differ from the ratio of two medians.',
    results.map(({ scope, title }) => `- [${title}](#${scope})`).join('\n'),
    ...(results.some(({ rows }) => rows.some(({ windows }) => windows)) ? [BY_WINDOWS] : []),
    ...results.flatMap(scopeParts),
    '<a id="ahead"></a>\n\n## Where another system is ahead',
    'The list compares with nestjs-cluster as it is by default, and has differences above 3 %. For the CPU of a request, where windows were compared, it has only rows with a value in the column Difference.',
    aheadList(results),
  ];
}

function scopeParts(result) {
  const { scope, title, about, command } = result;
  return [
    `<a id="${scope}"></a>\n\n## ${title}`,
    about,
    command && `\`\`\`sh\n${command}\n\`\`\``,
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
    [
      'Date',
      [dayOf(result), result.commit && `commit ${result.commit}`].filter(Boolean).join(', '),
    ],
  ]
    .filter(([, text]) => text !== '')
    .map(([name, text]) => `- ${name}: ${text}`)
    .join('\n');
}
