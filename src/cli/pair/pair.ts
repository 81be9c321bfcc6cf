import { Command } from 'commander';
import type { ControlClient } from '../../control/client.ts';
import type { PairingBatch } from '../../core/pairings/pairing-batch.ts';
import { publicReason } from '../../core/reports/pairing-failure.ts';
import { systemClock } from '../../system/clock.ts';
import { connectHub } from '../hub-connection.ts';
import { formatDuration, parseDurationSeconds } from '../terminal/duration.ts';
import { print, printable, printJson, printStderr, reportFailure } from '../terminal/output.ts';
import { pairingFailedText, SHORT_REASONS } from './failure-texts.ts';
import { type PairOptions, pairAppliance, reportWatchStopped, showPairing } from './pair-appliance.ts';

interface Options extends PairOptions {
  readonly all?: boolean;
  readonly print?: boolean;
  readonly output?: string;
  readonly byAddress?: boolean;
  readonly yes?: boolean;
}

/** `latchkey pair NAME`, and `latchkey pair --all` */
export function pairCommand(): Command {
  return new Command('pair')
    .description('pair an appliance: shows the link to log in at, and waits until somebody has')
    .argument('[name]', "the appliance's name")
    .option('--all', 'pair all appliances that need it, one after the other')
    .option('--no-wait', 'end when the link is there')
    .option(
      '--timeout <duration>',
      'stop waiting after so many seconds, or 45s, 10m; the pairing goes on',
      parseDurationSeconds,
    )
    .option('--print', "print a label for the appliance's cabinet; its link starts a fresh pairing each time")
    .option('--output <file>', 'with --print: where the picture goes (default: latchkey-NAME.svg)')
    .option('--by-address', "with --print: the QR code holds the hub's address of today, not its name")
    .option('--yes', 'with --print: write over a file that is there')
    .option('--json', 'print JSON, one object a line')
    .action(pair);
}

async function pair(name: string | undefined, options: Options, command: Command): Promise<void> {
  const { all, print, output, byAddress, yes } = options;
  if (all === true && name !== undefined) command.error('error: give a name or --all, not both');
  if (all === true && print === true) command.error('error: --print is for one appliance: give its name');
  if (all !== true && name === undefined) command.error('error: give the name of an appliance, or --all');
  const ofLabels = [output !== undefined && '--output', byAddress && '--by-address', yes && '--yes'].find(Boolean);
  if (ofLabels && print !== true) command.error(`error: ${ofLabels} goes with --print`);
  await using hub = await connectHub(command);
  if (name === undefined) return await pairAll(hub, options);
  if (print !== true) return await pairAppliance(hub, name, options);
  const { printLabel } = await import('./label.ts');
  return await printLabel(hub, name, options);
}

/**
 * `latchkey pair --all`: shows the link of one appliance after the other, each when the one before has ended, however that
 * was. Who goes on at the phone takes this along.
 */
async function pairAll(hub: ControlClient, options: PairOptions): Promise<void> {
  const clock = systemClock('');
  const began = clock.now().uptime;
  let round = await hub.pairAll();
  while (round.current !== null) {
    const { pairing, appliance } = round.current;
    const { timeout } = options;
    const left = timeout === undefined ? {} : { timeout: Math.max(0, timeout - (clock.now().uptime - began) / 1000) };
    const outcome = await showPairing(hub, pairing, appliance, { ...options, ...left }, true);
    switch (outcome.kind) {
      case 'link_shown':
        return;
      case 'failed':
        printStderr(`latchkey: ${pairingFailedText(appliance, outcome)}`);
        break;
      case 'paired':
        break;
      default: {
        const late = `not all appliances were paired within ${formatDuration(timeout ?? 0)} (${appliance} is not connected yet)`;
        return reportWatchStopped(
          outcome,
          late,
          'the hub goes on: run "latchkey pair --all" again to see the link once there is one',
        );
      }
    }
    round = await hub.nextPairing(round.id);
  }
  reportPairAll(round, options.json === true);
}

function reportPairAll({ connected, skipped, differentAccounts }: PairingBatch, json: boolean): void {
  if (differentAccounts.length > 0) {
    const each = differentAccounts.map(({ appliance, account }) => `${appliance} (${printable(account)})`).join(', ');
    printStderr(
      `the appliances were connected with different accounts: ${each}; if that was not meant, pair the wrong one again with "latchkey pair NAME"`,
    );
  }
  if (json) {
    printJson({
      event: 'done',
      connected,
      left_out: skipped.map(({ name, reason }) => ({ name, reason: publicReason(reason) })),
    });
  }
  const all = connected.length + skipped.length;
  if (all === 0) {
    reportFailure('there is no appliance to pair yet: add one with "latchkey appliance add NAME"');
    return;
  }
  if (skipped.length === 0) {
    const named = ['The one appliance is connected', 'Both appliances are connected'][all - 1];
    if (!json) print(named ?? `All ${all} appliances are connected`);
    return;
  }
  const why = skipped.map(({ name, reason }) => `${name} (${SHORT_REASONS[reason]})`).join(', ');
  const approval = skipped.find(({ reason }) => reason === 'waiting_for_approval');
  const next =
    approval !== undefined && skipped.every(({ reason }) => reason === 'waiting_for_approval')
      ? `"latchkey appliance approve ${approval.name}" approves one`
      : 'run "latchkey pair --all" again for those';
  reportFailure(`${connected.length} of ${all} appliances are connected; not ${why}: ${next}`);
}
