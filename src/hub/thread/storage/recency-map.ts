interface Node<V> {
  readonly key: string;
  readonly value: V;
  older: Node<V> | undefined;
  newer: Node<V> | undefined;
}

/**
 * A map that knows its least recently used entry. A `Map` has an order, too, but to find its first
 * entry, V8 skips all entries that were deleted before it.
 */
export class RecencyMap<V> {
  readonly #nodes = new Map<string, Node<V>>();
  #oldest: Node<V> | undefined;
  #newest: Node<V> | undefined;

  get size(): number {
    return this.#nodes.size;
  }

  /** Makes the entry of this key the newest. @returns its value. */
  use(key: string): V | undefined {
    const node = this.#nodes.get(key);
    if (node === undefined) return undefined;
    this.#unlink(node);
    this.#append(node);
    return node.value;
  }

  /** @param key a key that is not in the map. */
  add(key: string, value: V): void {
    const node: Node<V> = { key, value, older: undefined, newer: undefined };
    this.#nodes.set(key, node);
    this.#append(node);
  }

  delete(key: string): void {
    const node = this.#nodes.get(key);
    if (node === undefined) return;
    this.#nodes.delete(key);
    this.#unlink(node);
  }

  clear(): void {
    this.#nodes.clear();
    this.#oldest = this.#newest = undefined;
  }

  get oldest(): readonly [string, V] | undefined {
    return this.#oldest && [this.#oldest.key, this.#oldest.value];
  }

  /** All entries, oldest first. */
  *all(): Generator<readonly [string, V]> {
    let node = this.#oldest;
    while (node !== undefined) {
      const { newer }: Node<V> = node;
      yield [node.key, node.value];
      node = newer;
    }
  }

  #append(node: Node<V>): void {
    node.older = this.#newest;
    if (this.#newest === undefined) this.#oldest = node;
    else this.#newest.newer = node;
    this.#newest = node;
  }

  #unlink(node: Node<V>): void {
    if (node.older === undefined) this.#oldest = node.newer;
    else node.older.newer = node.newer;
    if (node.newer === undefined) this.#newest = node.older;
    else node.newer.older = node.older;
    node.older = node.newer = undefined;
  }
}
