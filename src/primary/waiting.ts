/** Who asked for something that takes a while, and wants to hear of its end. */
export interface Waiting<Result> {
  /** The worker that asked may leave in its course: it is told before, while it can still hear. */
  readonly leaving: boolean;
  readonly done: (result: Result) => void;
}
