import { styleText } from 'node:util';
import type { HubAnswer, StatusAnswer } from '../../control/messages.ts';
import type { Notice } from '../../core/reports/notice.ts';
import { formatDuration } from '../terminal/duration.ts';
import { printable } from '../terminal/output.ts';
import { alignColumns } from '../terminal/table.ts';
import { appliancesText } from './appliances-text.ts';

/** How the hub and its appliances stand, for people: first what needs them. Lines are of any length. */
export function statusText({ hub, appliances, notices }: StatusAnswer): string {
  const first = notices.length === 0 ? '' : `${notices.map(noticeLine).join('\n')}\n\n`;
  return `${first}${hubText(hub)}\n\n${appliancesText(appliances, hub)}`;
}

function hubText(hub: HubAnswer): string {
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

function oldCa({ ca_rotation }: HubAnswer): string[][] {
  if (ca_rotation === undefined) return [];
  const { old_fingerprint, until } = ca_rotation;
  return [['old CA', `${old_fingerprint}, until ${until ?? 'some time after the clock is confirmed'}`]];
}

/** The exit status of `latchkey status` where nothing gets better until a person acts. */
const PERSON_NEEDED = 3;

/** A notice that stands, as a line. */
export function noticeLine({ severity, message, what_to_do }: Notice): string {
  const mark = styleText(severity === 'error' ? 'red' : 'yellow', '!', { stream: process.stdout });
  return `${mark} ${printable(message)}. ${printable(what_to_do)}.`;
}

/** Sets the exit status by the notices that stand. */
export function tellByStatus(notices: readonly Notice[]): void {
  if (notices.some(({ severity }) => severity === 'error')) process.exitCode = PERSON_NEEDED;
}
