import { parser } from '@prometheus-io/lezer-promql';

/** A node of the syntax tree. The parser's package does not export its class. */
type Node = ReturnType<typeof parser.parse>['topNode'];

/** Properties of a metric that a query must respect. */
export interface MetricFacts {
  readonly labels: ReadonlySet<string>;
  /** Whether the metric only grows, so that `rate()` may be used. */
  readonly accumulates: boolean;
}

/** Metrics by the names of their series: `…_bucket`, `…_sum`, `…_count` each for itself. */
export type Metrics = ReadonlyMap<string, MetricFacts>;

/** What is to be said of an expression. */
export interface QueryReport {
  /** One sentence for each thing that is wrong. */
  readonly problems: readonly string[];
  /** Labels that its result has, where what it asks for has them. */
  readonly labels: ReadonlySet<string>;
}

const OF_COUNTERS = new Set(['rate', 'irate', 'increase']);
const SET_OPERATORS = new Set(['and', 'or', 'unless']);

/**
 * Checks an expression against the metrics there are: its syntax, the names it
 * asks for, the labels that its matchers, groupings and joins name, and that
 * rates are taken of counters.
 */
export function checkQuery(expression: string, metrics: Metrics): QueryReport {
  const check = new Check(expression, metrics);
  const labels = check.labelsOf(parser.parse(expression).topNode);
  return { problems: check.problems, labels };
}

class Check {
  readonly problems: string[] = [];

  constructor(
    private readonly expression: string,
    private readonly metrics: Metrics,
  ) {}

  labelsOf(node: Node): Set<string> {
    if (node.type.isError) this.#problem(`syntax error at ${node.from}`);
    switch (node.name) {
      case 'VectorSelector':
        return this.#selector(node);
      case 'AggregateExpr':
        return this.#aggregation(node);
      case 'FunctionCall':
        return this.#call(node);
      case 'BinaryExpr':
        return this.#binary(node);
      default:
        return union(children(node).map((child) => this.labelsOf(child)));
    }
  }

  #selector(node: Node): Set<string> {
    const name = this.#text(node.getChild('Identifier'));
    const metric = this.metrics.get(name);
    if (metric === undefined) this.#problem(`no metric ${name}`);
    const labels = new Set(metric?.labels);
    for (const label of this.#names(node.getChild('LabelMatchers'))) {
      this.#expect(label, labels, `the matchers of ${name}`);
    }
    return labels;
  }

  #aggregation(node: Node): Set<string> {
    const operator = this.#text(node.getChild('AggregateOp'));
    const inner = this.labelsOf(node.getChild('FunctionCallBody')!);
    const modifier = node.getChild('AggregateModifier');
    if (modifier === null) return /^(top|bottom)k$/.test(operator) ? inner : new Set();
    const named = this.#names(modifier);
    for (const label of named) this.#expect(label, inner, this.#text(modifier));
    if (modifier.getChild('By') !== null) return new Set(named);
    return new Set([...inner].filter((label) => !named.includes(label)));
  }

  #call(node: Node): Set<string> {
    const name = this.#text(node.getChild('FunctionIdentifier'));
    const body = node.getChild('FunctionCallBody')!;
    const labels = this.labelsOf(body);
    if (OF_COUNTERS.has(name)) {
      for (const selector of descendants(body, 'VectorSelector')) {
        const metric = this.#text(selector.getChild('Identifier'));
        if (this.metrics.get(metric)?.accumulates === false) {
          this.#problem(`${name}() of ${metric}, which is no counter`);
        }
      }
    }
    if (name === 'histogram_quantile') {
      this.#expect('le', labels, 'histogram_quantile()');
      labels.delete('le');
    }
    return labels;
  }

  /** A constant on one side of an operator joins nothing. */
  #binary(node: Node): Set<string> {
    const [left, right] = [node.firstChild!, node.lastChild!];
    const operator = this.expression
      .slice(left.to, right.from)
      .trim()
      .split(/[\s(]/)[0]!
      .toLowerCase();
    const [leftLabels, rightLabels] = [this.labelsOf(left), this.labelsOf(right)];
    const clause = node.getChild('MatchingModifierClause');
    const [matched, carried] = (clause?.getChildren('GroupingLabels') ?? []).map((group) =>
      this.#names(group),
    );
    const has = (modifier: string) => (clause?.getChildren(modifier) ?? []).length > 0;
    const on = has('On');
    for (const label of matched ?? []) {
      const where = this.#text(clause);
      if (on) {
        this.#expect(label, leftLabels, where);
        this.#expect(label, rightLabels, where);
      } else this.#expect(label, union([leftLabels, rightLabels]), where);
    }
    for (const label of carried ?? []) this.#expect(label, rightLabels, this.#text(clause));
    if (operator === 'or') return union([leftLabels, rightLabels]);
    if (SET_OPERATORS.has(operator)) return leftLabels;
    if (!hasSelector(left)) return rightLabels;
    if (!hasSelector(right) || isComparison(operator)) return leftLabels;
    if (has('GroupLeft')) return union([leftLabels, new Set(carried)]);
    if (on) return new Set(matched);
    if (matched === undefined) this.#expectSame(leftLabels, rightLabels, operator);
    return new Set([...leftLabels].filter((label) => !matched?.includes(label)));
  }

  #expect(label: string, labels: ReadonlySet<string>, where: string): void {
    if (!labels.has(label)) this.#problem(`no label ${label} for ${where}`);
  }

  /** Series whose labels differ never meet: the result would be empty. */
  #expectSame(left: ReadonlySet<string>, right: ReadonlySet<string>, operator: string): void {
    const [a, b] = [[...left].sort().join(', '), [...right].sort().join(', ')];
    if (a !== b) this.#problem(`{${a}} ${operator} {${b}} match nothing`);
  }

  #problem(what: string): void {
    this.problems.push(`${what} in: ${this.expression.replace(/\s+/g, ' ')}`);
  }

  #text(node: Node | null): string {
    return node === null ? '' : this.expression.slice(node.from, node.to);
  }

  #names(node: Node | null): string[] {
    return node === null ? [] : descendants(node, 'LabelName').map((name) => this.#text(name));
  }
}

function isComparison(operator: string): boolean {
  return /^[=!<>]/.test(operator);
}

function hasSelector(node: Node): boolean {
  return descendants(node, 'VectorSelector').length > 0;
}

/** All below `node` of this name, and it itself. */
function descendants(node: Node, name: string): Node[] {
  if (node.name === name) return [node];
  return children(node).flatMap((child) => descendants(child, name));
}

function children(node: Node): Node[] {
  const found: Node[] = [];
  for (let child = node.firstChild; child !== null; child = child.nextSibling) found.push(child);
  return found;
}

function union(sets: readonly ReadonlySet<string>[]): Set<string> {
  return new Set(sets.flatMap((set) => [...set]));
}
