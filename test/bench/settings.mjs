import os from 'node:os';
import { count, known, parsed } from './command-line.mjs';
import { ARTICLES, COMPARISONS } from './comparisons/index.mjs';
import { SYSTEMS } from './systems/index.mjs';

const ADAPTERS = ['express', 'fastify'];
const COUNTS = ['workers', 'seconds', 'rounds', 'starts', 'windows', 'events'];

const OPTIONS = {
  help: { type: 'boolean', short: 'h' },
  scope: { type: 'string', multiple: true },
  system: { type: 'string', multiple: true },
  adapter: { type: 'string', multiple: true },
  node: { type: 'string' },
  ...Object.fromEntries(COUNTS.map((name) => [name, { type: 'string' }])),
  force: { type: 'boolean' },
  json: { type: 'string' },
};

/** Scopes that stand for several. */
const GROUPS = {
  articles: ARTICLES.map(({ name }) => name),
  all: COMPARISONS.map(({ name }) => name),
};

const HELP = `npm run bench -- [options]

  --scope NAME     articles (default), all, or one or more of:
                   ${COMPARISONS.map(({ name }) => name).join(' ')}
  --system NAME    only these systems, of:
                   ${SYSTEMS.map(({ name }) => name).join(' ')}
  --adapter NAME   express or fastify; each scope has its own default
  --workers N      workers of each system (default: the cores)
  --node PATH      Node under test; default: the one that runs this
  --seconds N      length of a measurement; each scope has its own default
  --rounds N       how often each system is measured; each scope has its own default
  --starts N       number of starts of all systems; 6           } where the cost of a request
  --windows N      how often each is measured in a start; 2    } is compared: keep-alive, …
  --events N       reloads or kills in a round
  --json FILE      write the results there too
  --force          measure although others use the machine; for a look, not for the report

Without options other than --scope and --json, results go to test/bench/results, and report.md is
made of them. Measurements that other programs disturbed are discarded. If they are too many, the
run ends and names these programs.`;

/**
 * Parses and checks the command line.
 *
 * @throws UsageError
 */
export function readSettings(args) {
  const values = parsed(args, OPTIONS);
  if (values.help) return { help: HELP };
  const scopes = (values.scope ?? ['articles']).flatMap((name) => GROUPS[name] ?? [name]);
  known('--scope', scopes, GROUPS.all);
  known(
    '--system',
    values.system ?? [],
    SYSTEMS.map(({ name }) => name),
  );
  known('--adapter', values.adapter ?? [], ADAPTERS);
  const counts = Object.fromEntries(
    COUNTS.filter((name) => values[name] !== undefined).map((name) => [
      name,
      count(`--${name}`, values[name]),
    ]),
  );
  return {
    scopes: [...new Set(scopes)],
    systems: values.system,
    adapters: values.adapter,
    cores: os.availableParallelism(),
    node: values.node ?? process.execPath,
    force: values.force ?? false,
    ...counts,
    json: values.json,
    isPublished: Object.keys(values).every((name) => name === 'scope' || name === 'json'),
  };
}
