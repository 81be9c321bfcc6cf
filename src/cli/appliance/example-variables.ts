import type { HubResponse } from '../../control/messages.ts';

/**
 * The variables of the examples in docs/appliances.md, with a line for a shell that sets them.
 * @param endpoint an address of the hub's OAuth server
 * @param own those that only the caller knows, as `NAME=VALUE`
 */
export function exampleVariables(
  { id, http_port }: Pick<HubResponse, 'id' | 'http_port'>,
  endpoint: string,
  pin: string,
  own: readonly string[],
): string {
  const { origin, hostname, port } = new URL(endpoint);
  const variables = [
    `HUB=${origin}`,
    `HUB_HTTP=http://${hostname}:${http_port}`,
    `HUB_NAME=${id}.local`,
    `HUB_ADDRESS=${hostname.replaceAll(/[[\]]/g, '')}`,
    `HUB_PORT=${port}`,
    `PIN=${pin}`,
    ...own,
  ];
  return `For developers, the variables of the examples in docs/appliances.md:

  export ${variables.join(' ')}`;
}
