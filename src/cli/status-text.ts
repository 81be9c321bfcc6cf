import type { HubStatus } from '../core/administration.ts';
import { appliancesText } from './appliance-table.ts';
import { formatDuration } from './duration.ts';
import { noticeLine } from './notice-lines.ts';
import { printable } from './output.ts';
import type { Status } from './status-watch.ts';
import { alignColumns } from './table.ts';

/** How the hub and its appliances stand, for people: first what needs them. Lines are of any length. */
export function statusText({ hub, appliances, notices }: Status): string {
  const first = notices.length === 0 ? '' : `${notices.map(noticeLine).join('\n')}\n\n`;
  return `${first}${hubText(hub)}\n\n${appliancesText(appliances, hub)}`;
}

function hubText(hub: HubStatus): string {
  const rows = [
    ['hub', `${printable(hub.name)} (${hub.id})`],
    ['version', hub.version],
    ['address', hub.address ?? 'none yet: the home network is not there'],
    ['ports', `${hub.https_port} (HTTPS), ${hub.http_port} (HTTP)`],
    ['CA fingerprint', hub.ca_fingerprint],
    ...oldCa(hub),
    ['running for', formatDuration(hub.uptime)],
  ];
  if (hub.registration_open_for !== undefined) {
    rows.push(['registration', `open to any appliance for another ${formatDuration(hub.registration_open_for)}`]);
  }
  const problems = (hub.problems ?? []).map(({ message }) => `\n\n${printable(message)}`);
  return alignColumns(rows) + problems.join('');
}

function oldCa({ ca_rotation }: HubStatus): string[][] {
  if (ca_rotation === undefined) return [];
  const { old_fingerprint, until } = ca_rotation;
  return [['old CA', `${old_fingerprint}, until ${until ?? 'some time after the clock is confirmed'}`]];
}
