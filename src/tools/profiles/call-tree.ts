import { fileURLToPath } from 'node:url';
import { oneLine } from '../../contract/errors/index.js';

/** A summary is short: so many functions are shown, */
export const MAX_FUNCTIONS = 5;

/** and so many callers of each, usually the service and the controller. */
export const MAX_CALLERS = 3;

/** A function, as V8's profiles name it. */
export interface CallFrame {
  readonly functionName: string;
  readonly url: string;
  /** From 0; -1 if V8 knows none. */
  readonly lineNumber: number;
  readonly columnNumber: number;
}

/** The callers and callees of a profile. */
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

  /** Functions of the app on the way to the root, each once, innermost first. */
  appFunctions(id: number): readonly string[] {
    return [...new Set([...this.pathFrom(id)].filter(isOfApp).map(nameOf))];
  }
}

/** Whether a function belongs to the app, not to Node or a package. */
function isOfApp({ url }: CallFrame): boolean {
  return url !== '' && !url.startsWith('node:') && !url.includes('/node_modules/');
}

/** `find (/app/dist/shop.service.js:18:10)`, without control characters. */
export function nameOf({ functionName, url, lineNumber, columnNumber }: CallFrame): string {
  const name = functionName || '(anonymous)';
  return oneLine(
    url === '' ? name : `${name} (${pathOf(url)}:${lineNumber + 1}:${columnNumber + 1})`,
  );
}

function pathOf(url: string): string {
  try {
    return url.startsWith('file:') ? fileURLToPath(url) : url;
  } catch {
    return url;
  }
}
