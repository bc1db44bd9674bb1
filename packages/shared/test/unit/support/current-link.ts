/** Sets the link that `extension()` finds in this process, as `bootstrap()` does. */
export function setCurrentLink(link: object | undefined): void {
  (globalThis as Record<symbol, unknown>)[Symbol.for('nestjs-cluster.link')] = link;
}
