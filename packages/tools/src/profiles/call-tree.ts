import { fileURLToPath } from 'node:url';
import { oneLine } from '../../contract/errors/index.js';

/** Maximum number of functions that a summary shows. */
export const MAX_FUNCTIONS = 5;

/** Maximum number of callers that a summary shows per function: usually the service and the controller. */
export const MAX_CALLERS = 3;

/** A function in V8's profiles. */
export interface CallFrame {
  readonly functionName: string;
  readonly url: string;
  /** The line, counted from 0. It is -1 if V8 does not know the line. */
  readonly lineNumber: number;
  readonly columnNumber: number;
}

/** The call tree of a profile. Each node is a function with one path of callers. */
export class CallTree {
  readonly #frames = new Map<number, CallFrame>();
  readonly #callers = new Map<number, number>();

  add(id: number, frame: CallFrame, caller?: number): void {
    this.#frames.set(id, frame);
    if (caller !== undefined) this.#callers.set(id, caller);
  }

  frame(id: number): CallFrame | undefined {
    return this.#frames.get(id);
  }

  /** This node, its caller, and so on to the root. */
  *pathFrom(id: number): Generator<CallFrame> {
    for (let at: number | undefined = id; at !== undefined; at = this.#callers.get(at)) {
      const frame = this.#frames.get(at);
      if (frame === undefined) return;
      yield frame;
    }
  }

  /** The functions of the app from this node to the root, each once, innermost first. */
  appFunctions(id: number): readonly string[] {
    return [...new Set([...this.pathFrom(id)].filter(isOfApp).map(nameOf))];
  }
}

/** Whether a function belongs to the app, not to Node or a package. */
export function isOfApp({ url }: CallFrame): boolean {
  return url !== '' && !url.startsWith('node:') && !url.includes('/node_modules/');
}

/** The name to show, e.g. `find (/app/dist/shop.service.js:18:10)`, without control characters. */
export function nameOf({ functionName, url, lineNumber, columnNumber }: CallFrame): string {
  const name = functionName || '(anonymous)';
  return oneLine(
    url === '' ? name : `${name} (${pathOf(url)}:${lineNumber + 1}:${columnNumber + 1})`,
  );
}

/** The path of a file's URL. Another URL stays as it is. */
export function pathOf(url: string): string {
  try {
    return url.startsWith('file:') ? fileURLToPath(url) : url;
  } catch {
    return url;
  }
}
