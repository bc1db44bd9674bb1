/** Runs `action` after `ms`; what it returns cancels that. */
export type Later = (ms: number, action: () => void) => () => void;

/** Has `run` run what is due: a timer's own call has nothing that would catch what it throws. */
export function laterBy(run: (action: () => void) => void): Later {
  return (ms, action) => {
    const timer = setTimeout(() => run(action), ms);
    return () => clearTimeout(timer);
  };
}
