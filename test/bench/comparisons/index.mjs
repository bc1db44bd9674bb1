import { ARTICLES } from './articles.mjs';
import { evenness } from './evenness.mjs';
import { kills, reloads } from './losses.mjs';
import { memory } from './memory.mjs';
import { mixed } from './mixed.mjs';
import { scrape } from './scrape.mjs';
import { keepAlive, newConnections } from './throughput.mjs';

export { ARTICLES };

/** Everything in which systems are compared, in the order of the report. */
export const COMPARISONS = [
  ...ARTICLES,
  keepAlive,
  newConnections,
  evenness,
  mixed,
  reloads,
  kills,
  memory,
  scrape,
];
