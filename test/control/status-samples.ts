import { toWire } from '../../src/control/messages.ts';
import type { HubStatus, StatusReport } from '../../src/core/administration.ts';
import type { ApplianceStatus } from '../../src/core/appliances/appliance-status.ts';
import type { ConnectionStatus } from '../../src/core/connections/connection-status.ts';
import { deriveConditions } from '../../src/core/health/derive-conditions.ts';
import type { Notice } from '../../src/core/health/notice.ts';
import type { Named } from '../../src/core/name.ts';

/** The status of a hub, with these changes. */
export function hubStatus(changes: Partial<HubStatus> = {}): HubStatus {
  return {
    id: 'latchkey-1a2b3c',
    name: 'Cellar hub',
    version: '1.2.3',
    address: '192.168.1.7',
    httpPort: 8480,
    httpsPort: 8443,
    caFingerprint: 'pin',
    configFile: '/etc/latchkey/latchkey.toml',
    uptime: 60,
    ...changes,
  };
}

/** The status of an unpaired appliance with these changes; unless they say otherwise, it has its own connection. */
export function applianceStatus(changes: Partial<ApplianceStatus> & { name: string }): ApplianceStatus {
  const usage = { lastToken: null, tokens: { today: 0, last14Days: 0 } };
  const { name } = changes;
  return { title: name, clientId: crypto.randomUUID(), connection: name, ...usage, ...UNPAIRED, ...changes };
}

/** The status of an unpaired connection that nobody uses, with these changes. */
export function connectionStatus(changes: Partial<ConnectionStatus> & { name: string }): ConnectionStatus {
  return { title: changes.name, users: [], loginEnds: null, ...UNPAIRED, ...changes };
}

/** Things with their names as titles. */
export function named(...names: readonly string[]): Named[] {
  return names.map((name) => ({ name, title: name }));
}

/** The connections that these appliances use, sorted by name. */
export function connectionsOf(appliances: readonly ApplianceStatus[]): ConnectionStatus[] {
  const byName = Map.groupBy(appliances, ({ connection }) => connection);
  const connections = [...byName].map(([name, [first, ...others]]) => {
    const users = [first, ...others].flatMap((user) => user ?? []).sort(byNameOrder);
    const own = users.length === 1 && first?.name === name ? { own: true as const } : { title: name };
    return connectionStatus({
      ...first,
      name,
      users: users.map(({ name: user, title }) => ({ name: user, title })),
      ...own,
    });
  });
  return connections.sort(byNameOrder);
}

const UNPAIRED = {
  state: 'unpaired',
  scope: null,
  expiresIn: null,
  refreshIn: null,
  lastRefresh: null,
  problem: null,
  portal: 'home',
  account: null,
} as const;

/** Connections as the control socket sends them. */
export function connectionsOnWire(connections: readonly ConnectionStatus[]) {
  return connections.map(({ users, ...connection }) => ({
    ...toWire(connection),
    appliances: users.map(({ name }) => name),
  }));
}

/** Sorts by name. */
export function byNameOrder(a: { readonly name: string }, b: { readonly name: string }): number {
  return a.name < b.name ? -1 : 1;
}

/** The address of the installer's page of a {@link FakeAdministration}. */
export const PAGE = 'https://192.168.1.7:8443/';

/** A hub's status report, with the conditions that a hub derives. @param now the wall clock, in ms since 1970 */
export function hubStatusReport(
  hub: HubStatus,
  appliances: readonly ApplianceStatus[],
  notices: readonly Notice[] = [],
  now = Date.now(),
  connections: readonly ConnectionStatus[] = connectionsOf(appliances),
): StatusReport {
  const problems = hub.problems ?? [];
  return {
    hub,
    connections,
    appliances,
    conditions: deriveConditions({ connections, appliances, problems, pageUrl: PAGE, now }),
    notices,
  };
}

/** An appliance with the login of a connection. */
export function withLoginOf(appliance: ApplianceStatus, connection: ConnectionStatus): ApplianceStatus {
  const { users: _, loginEnds: __, declared: ___, own: ____, ...login } = connection;
  const { name, title } = appliance;
  return { ...appliance, ...login, name, title };
}
