/** Commands that print what leads to the workers. */
export const COMMANDS = ['nginx', 'iptables'] as const;

const PATTERNS = {
  nginx: /^ +server \S+:(\d+)/gm,
  iptables: /-j REDIRECT --to-ports (\d+)$/gm,
} as const;

/** The ports that a configuration leads to, in its order. */
export function portsIn(command: (typeof COMMANDS)[number], text: string): number[] {
  return [...text.matchAll(PATTERNS[command])].map(([, number]) => Number(number));
}
