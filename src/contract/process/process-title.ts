/**
 * Names this process for `ps`. The system has room for as much as the command
 * line was long (on Linux; `node app.js` has 11 characters), and cuts the rest:
 * of the titles the first that is not cut stands, else the command line does.
 */
export function setTitle(...titles: readonly string[]): void {
  const before = process.title;
  for (const title of titles) {
    process.title = title;
    if (process.title === title) return;
  }
  process.title = before;
}
