import type { AppMethod, MethodProfile } from '../../contract/snapshot/index.js';
import type { CallFrame } from '../profiles/call-tree.js';

/** A call frame of the inspector. */
export interface ScriptFrame extends CallFrame {
  readonly scriptId: string;
}

interface Range {
  readonly line: number;
  readonly column: number;
  readonly endLine: number;
  readonly endColumn: number;
}

interface PlacedMethod extends AppMethod {
  readonly range: Range | undefined;
  readonly classRange: Range | undefined;
}

/**
 * Finds the methods of Nest's container in a profile of the same process. V8 gives the same place
 * for a function and for its call frames, so this needs no source maps.
 */
export class CodeMap {
  readonly #byScript = new Map<string, PlacedMethod[]>();

  constructor({ list, places }: Pick<MethodProfile, 'list' | 'places'>) {
    const { methods = [], extents = [] } = list ?? {};
    const rangeOf = (code: number): Range | undefined => {
      const place = places[code];
      if (!place) return undefined;
      const { lineNumber: line, columnNumber: column } = place;
      const [breaks, last] = extents[code]!;
      const endColumn = breaks === 0 ? column + last : last;
      return { line, column, endLine: line + breaks, endColumn };
    };
    for (const method of methods) {
      const { scriptId } = places[method.declaredBy] ?? {};
      if (scriptId === undefined) continue;
      const isWrapped = places[method.code]?.scriptId !== scriptId;
      const range = isWrapped ? undefined : rangeOf(method.code);
      const placed = { ...method, range, classRange: rangeOf(method.declaredBy) };
      const others = this.#byScript.get(scriptId);
      if (others === undefined) this.#byScript.set(scriptId, [placed]);
      else others.push(placed);
    }
  }

  /**
   * The method to whose source text a function belongs; callbacks inside a method belong to it. A
   * decorator may have replaced the method by a function of its own. Then the name decides, within
   * the text of the class.
   */
  methodOf(frame: ScriptFrame): AppMethod | undefined {
    const methods = this.#byScript.get(frame.scriptId) ?? [];
    // The text of a function begins before its parameters, and V8's place is the parameters. So a
    // range on one line ends too late, in the next function. The last range that has begun counts.
    const around = methods.filter(
      ({ range, classRange }) => within(range, frame) && within(classRange, frame),
    );
    const [last] = around.toSorted((a, b) => byBegin(b.range!, a.range!));
    if (last !== undefined) return last;
    const name = frame.functionName.split('.').at(-1);
    return methods.find((each) => within(each.classRange, frame) && each.name.endsWith(`.${name}`));
  }
}

function byBegin(a: Range, b: Range): number {
  return a.line - b.line || a.column - b.column;
}

function within(range: Range | undefined, { lineNumber, columnNumber }: CallFrame): boolean {
  if (range === undefined) return false;
  const { line, column, endLine, endColumn } = range;
  if (lineNumber < line || lineNumber > endLine) return false;
  if (lineNumber === line && columnNumber < column) return false;
  return lineNumber !== endLine || columnNumber <= endColumn;
}
