/** Formats a text from an app or from outside as one line of a log. */
export declare function oneLine(text: string): string;
/**
 * Removes escape sequences, control characters other than tabs and line breaks, other line
 * separators and characters that change the text direction. Cuts a text that is too long.
 */
export declare function clean(text: string): string;
