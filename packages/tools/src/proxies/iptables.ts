interface IptablesOptions {
  readonly ipv6: boolean;
  readonly name: string;
}

/**
 * A shell script that spreads connections on the public port over the workers in turn. The rules
 * have their own chain. Running the script again replaces the rules, even if the port or the number
 * of workers has changed.
 */
export function iptablesScript(
  ports: readonly number[],
  { listen, ...options }: IptablesOptions & { readonly listen: number },
): string {
  const { iptables, chain, jump } = words(options);
  return `#!/bin/sh
# ${ports.length} workers of nestjs-cluster behind port ${listen}. Run it as root. The workers must
# listen on all interfaces (no "host", or '0.0.0.0').
set -e

# iptables-restore replaces the chain atomically.
${iptables}-restore --wait --noflush <<'RULES'
*nat
:${chain} - [0:0]
-A ${chain} -p tcp ! --dport ${listen} -j RETURN
${ports.map((port, index) => redirect(chain, port, ports.length - index)).join('\n')}
COMMIT
RULES

for hook in PREROUTING OUTPUT; do
  ${iptables} --wait -t nat -C "$hook" ${jump} 2> /dev/null ||
    ${iptables} --wait -t nat -A "$hook" ${jump}
done
`;
}

/** A shell script that removes the rules of {@link iptablesScript}, if there are any. */
export function iptablesRemovalScript(options: IptablesOptions): string {
  const { iptables, chain, jump } = words(options);
  return `#!/bin/sh
# Removes the rules of nestjs-cluster. Run it as root.
set -e
rules=$(${iptables} --wait -t nat -S)
for hook in PREROUTING OUTPUT; do
  if ${iptables} --wait -t nat -C "$hook" ${jump} 2> /dev/null; then
    ${iptables} --wait -t nat -D "$hook" ${jump}
  fi
done
if printf '%s\\n' "$rules" | grep -q -x -e '-N ${chain}'; then
  ${iptables} --wait -t nat -F ${chain}
  ${iptables} --wait -t nat -X ${chain}
fi
`;
}

/** A rule that sends every `left`-th connection to the port. The last rule sends every connection. */
function redirect(chain: string, port: number, left: number): string {
  const share = left > 1 ? ` -m statistic --mode nth --every ${left} --packet 0` : '';
  return `-A ${chain} -p tcp${share} -j REDIRECT --to-ports ${port}`;
}

function words({ ipv6, name }: IptablesOptions) {
  const chain = name.toUpperCase();
  return {
    iptables: ipv6 ? 'ip6tables' : 'iptables',
    chain,
    // The jump omits the public port, so that a later run with another port finds the jump.
    jump: `-p tcp -m addrtype --dst-type LOCAL -j ${chain}`,
  };
}
