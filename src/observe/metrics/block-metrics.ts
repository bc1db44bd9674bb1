import type { BlockCause } from '../../contract/snapshot/index.js';
import { type Labels, type MetricFamily, plainFamily } from '../exposition/metric-family.js';
import { OTHER_ROUTE, type RouteTemplateReader } from './route-template.js';

/** The paths of the app's handlers by `Class.method`, without the prefixes and versions of the app. */
export type Handlers = ReadonlyMap<string, readonly string[]>;

/** The known routes of the app. All of it is text of the app, never of a client. */
interface Routes {
  readonly readTemplate: RouteTemplateReader;
  /** The templates of the requests so far. */
  readonly known: () => Iterable<string>;
  readonly handlers: () => Handlers;
}

/** The blocks of one route. */
interface Blocks {
  count: number;
  seconds: number;
}

/** Counts the blocks of the event loop by the route that caused them. */
export class BlockMetrics {
  readonly #blocks = new Map<string, Blocks>();
  #handlers: Handlers | undefined;

  constructor(
    private readonly prefix: string,
    private readonly routes: Routes,
    /** The slot, which becomes a label of every series if workers are shown separately. */
    private readonly workerLabel?: number,
  ) {}

  add(ms: number, cause: BlockCause): void {
    const route = this.#routeOf(cause);
    const blocks = this.#blocks.get(route) ?? { count: 0, seconds: 0 };
    blocks.count += 1;
    blocks.seconds += ms / 1_000;
    this.#blocks.set(route, blocks);
  }

  /** Each route begins at 0: otherwise its first block would not count in a rate. */
  families(): MetricFamily[] {
    const names = new Set([OTHER_ROUTE, ...this.routes.known(), ...this.#blocks.keys()]);
    const worker = this.workerLabel;
    const counter = (name: string, help: string, read: (blocks: Blocks) => number): MetricFamily =>
      plainFamily(
        'counter',
        `${this.prefix}nestjs_cluster_event_loop_${name}`,
        help,
        [...names].map((route): [Labels, number] => {
          const blocks = this.#blocks.get(route);
          return [
            { route, ...(worker !== undefined && { worker }) },
            blocks === undefined ? 0 : read(blocks),
          ];
        }),
      );
    return [
      counter(
        'blocks_total',
        'How often something blocked the event loop for more than 50 ms, by route template',
        ({ count }) => count,
      ),
      counter(
        'block_seconds_total',
        'Time in which the event loop was blocked for more than 50 ms at once, by route template',
        ({ seconds }) => seconds,
      ),
    ];
  }

  /** The route whose handler runs or waits for what runs, else the route of the likeliest request. */
  #routeOf({ methods, requests }: BlockCause): string {
    this.#handlers ??= this.routes.handlers();
    const open = requests.map((request) => this.routes.readTemplate(request));
    for (const method of methods) {
      const paths = this.#handlers.get(method);
      if (paths === undefined) continue;
      const route = shortest(paths, open) ?? shortest(paths, [...this.routes.known()]);
      if (route !== undefined) return route;
    }
    return open[0] ?? OTHER_ROUTE;
  }
}

/** The template that has the least in front of one of the paths. */
function shortest(paths: readonly string[], templates: readonly string[]): string | undefined {
  return templates
    .filter((template) => paths.some((path) => template.endsWith(path.replace(/\/$/, ''))))
    .toSorted((a, b) => a.length - b.length)[0];
}
