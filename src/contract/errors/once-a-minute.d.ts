/** Logs at most one line of each kind a minute. For lines that every call may cause. */
export declare class OnceAMinute {
    #private;
    private readonly log;
    constructor(log: (line: string) => void);
    /**
     * @param kind groups lines that have the same meaning.
     * @param rest replaces `kind` when the maximum number of kinds is reached.
     */
    say(text: string, kind: string, rest?: string): void;
}
