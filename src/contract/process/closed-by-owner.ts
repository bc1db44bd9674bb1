/** Marks a socket that the drain leaves alone, because its owner chooses when to ask the peer to close. */
const CLOSED_BY_OWNER = Symbol.for('nestjs-cluster.closed-by-owner');

/** Makes the drain ignore this WebSocket, because the caller will ask its peer to close. */
export function closedByOwner(socket: object): void {
  (socket as { [CLOSED_BY_OWNER]?: true })[CLOSED_BY_OWNER] = true;
}

export function isClosedByOwner(socket: object): boolean {
  return CLOSED_BY_OWNER in socket;
}
