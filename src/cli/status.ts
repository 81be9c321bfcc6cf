import { Command } from 'commander';
import type { HubStatus } from '../core/administration.ts';
import { showAppliances } from './appliance-table.ts';
import { formatDuration } from './duration.ts';
import { connectHub } from './hub-connection.ts';
import { showNotices, tellByStatus } from './notice-lines.ts';
import { print, printable, printJson } from './output.ts';
import { alignColumns } from './table.ts';

/** `latchkey status` */
export function statusCommand(): Command {
  return new Command('status')
    .description('show how the hub and each appliance stand')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExit status: 0; 3 where a person is needed; 1 failed; 2 wrong usage.')
    .action(async (options: { json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const status = await hub.status();
      tellByStatus(status.notices);
      if (options.json === true) {
        printJson(status);
        return;
      }
      showNotices(status.notices);
      showHub(status.hub);
      print('');
      showAppliances(status.appliances);
    });
}

function showHub(hub: HubStatus): void {
  const rows = [
    ['hub', `${printable(hub.name)} (${hub.id})`],
    ['version', hub.version],
    ['address', hub.address ?? 'none yet: the home network is not there'],
    ['ports', `${hub.https_port} (HTTPS), ${hub.http_port} (HTTP)`],
    ['CA fingerprint', hub.ca_fingerprint],
    ['running for', formatDuration(hub.uptime)],
  ];
  if (hub.registration_open_for !== undefined) {
    rows.push(['registration', `open to any appliance for another ${formatDuration(hub.registration_open_for)}`]);
  }
  print(alignColumns(rows));
  for (const { message } of hub.problems ?? []) print(`\n${printable(message)}`);
}
