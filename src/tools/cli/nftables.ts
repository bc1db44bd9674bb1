/**
 * A ruleset that spreads connections to the public port over the workers in turn, for IPv4 and
 * IPv6. Its table has no other rules. Loading the ruleset again replaces that table in one step.
 */
export function nftablesRuleset(
  ports: readonly number[],
  { listen, name }: { readonly listen: number; readonly name: string },
): string {
  const table = `inet ${name}`;
  const map = ports.map((port, index) => `${index} : ${port}`).join(', ');
  return `#!/usr/sbin/nft -f
# ${ports.length} workers of nestjs-cluster behind port ${listen}. Load it as root (nft -f); the workers have to
# listen on all interfaces. "nft delete table ${table}" takes it away.
table ${table}
delete table ${table}
table ${table} {
  chain spread {
    meta l4proto tcp redirect to :numgen inc mod ${ports.length} map { ${map} }
  }
  chain prerouting {
    type nat hook prerouting priority dstnat; policy accept;
    fib daddr type local tcp dport ${listen} jump spread
  }
  chain output {
    type nat hook output priority -100; policy accept;
    fib daddr type local tcp dport ${listen} jump spread
  }
}
`;
}
