/** Of our own: it can be filled anew, and taken away, without touching anybody else's rules. */
const CHAIN = 'NESTJS_CLUSTER';

interface IptablesOptions {
  /** Public port. */
  readonly listen: number;
  readonly ipv6: boolean;
}

/**
 * A shell script that spreads connections to the public port over the workers,
 * one after the other. Run again, it replaces what it had set up before.
 */
export function iptablesScript(ports: readonly number[], options: IptablesOptions): string {
  const { iptables, jump } = words(options);
  return `#!/bin/sh
# ${ports.length} workers of nestjs-cluster behind port ${options.listen}. Run it as root; the workers have to listen
# on all interfaces (no "host", or '0.0.0.0').
set -e

# The chain is replaced at once: no connection finds it half full.
${iptables}-restore --wait --noflush <<'RULES'
*nat
:${CHAIN} - [0:0]
${ports.map((port, index) => rule(port, ports.length - index)).join('\n')}
COMMIT
RULES

for chain in PREROUTING OUTPUT; do
  ${iptables} --wait -t nat -C "$chain" ${jump} 2> /dev/null ||
    ${iptables} --wait -t nat -A "$chain" ${jump}
done
`;
}

/** A shell script that takes away what {@link iptablesScript} set up; where there is nothing, it does nothing. */
export function iptablesRemovalScript(options: IptablesOptions): string {
  const { iptables, jump } = words(options);
  return `#!/bin/sh
# Takes away the rules of nestjs-cluster for port ${options.listen}. Run it as root.
for chain in PREROUTING OUTPUT; do
  ${iptables} --wait -t nat -D "$chain" ${jump} 2> /dev/null
done
${iptables} --wait -t nat -F ${CHAIN} 2> /dev/null && ${iptables} --wait -t nat -X ${CHAIN}
exit 0
`;
}

/** Of what reaches the rule, one in `left` goes to the port: the last takes all. */
function rule(port: number, left: number): string {
  const share = left > 1 ? ` -m statistic --mode nth --every ${left} --packet 0` : '';
  return `-A ${CHAIN} -p tcp${share} -j REDIRECT --to-ports ${port}`;
}

function words({ listen, ipv6 }: IptablesOptions): { iptables: string; jump: string } {
  return {
    iptables: ipv6 ? 'ip6tables' : 'iptables',
    jump: `-p tcp -m addrtype --dst-type LOCAL --dport ${listen} -j ${CHAIN}`,
  };
}
