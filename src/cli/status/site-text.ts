import type { SiteResponse } from '../../control/messages.ts';
import { systemClock } from '../../system/clock.ts';
import { formatTimeSince } from '../terminal/duration.ts';
import { printable } from '../terminal/output.ts';
import { alignColumns } from '../terminal/table.ts';

/** The hubs of a site, as a table. */
export function siteText({ id, hubs }: SiteResponse): string {
  const now = systemClock('').now().wall;
  return `Hubs of the site ${id}:\n${alignColumns([
    ['HUB', 'ID', 'ADDRESS', 'VERSION', 'LAST SEEN'],
    ...hubs.map((hub) => [
      printable(hub.name),
      printable(hub.id),
      hub.address ?? '–',
      printable(hub.version),
      hub.this_hub === true ? 'this hub' : formatTimeSince(hub.last_seen, now),
    ]),
  ])}`;
}
