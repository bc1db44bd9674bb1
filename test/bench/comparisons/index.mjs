import { fibonacci } from './article-fibonacci.mjs';
import { gzipPage } from './article-gzip-page.mjs';
import { slow } from './article-slow.mjs';
import { steady } from './article-steady.mjs';
import { evenness } from './evenness.mjs';
import { kills, reloads } from './losses.mjs';
import { memory } from './memory.mjs';
import { mixed } from './mixed.mjs';
import { recovery } from './recovery.mjs';
import { scrape } from './scrape.mjs';
import { startup } from './startup.mjs';
import { keepAlive, newConnections } from './throughput.mjs';

/** The workloads of the articles that started this project. */
export const ARTICLES = [gzipPage, slow, fibonacci, steady];

/** Everything in which systems are compared, in the order of the report. */
export const COMPARISONS = [
  ...ARTICLES,
  keepAlive,
  newConnections,
  evenness,
  mixed,
  reloads,
  kills,
  startup,
  recovery,
  memory,
  scrape,
];
