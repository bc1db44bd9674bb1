/** The message of a thrown value. Never throws, although some values cannot be converted to text. */
export declare function messageOf(thrown: unknown): string;
/** A thrown value in full, with its stack. Never throws, although a getter or a proxy may. */
export declare function inspected(thrown: unknown): string;
