/**
 * Sets the title of this process for `ps`. On Linux a title is cut if it is longer than the command
 * line was (`node app.js` has 11 characters). The first of `titles` that is not cut is used. If all
 * are cut, the title does not change.
 */
export function setTitle(...titles: readonly string[]): void {
  const before = process.title;
  for (const title of titles) {
    process.title = title;
    if (process.title === title) return;
  }
  process.title = before;
}
