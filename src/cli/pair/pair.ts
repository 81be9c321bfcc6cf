import { Command } from 'commander';
import type { ControlClient } from '../../control/client.ts';
import { formatDuration } from '../../core/clock.ts';
import type { PairingBatch } from '../../core/pairings/pairing-batch.ts';
import { publicReason } from '../../core/reports/pairing-failure.ts';
import { systemClock } from '../../system/clock.ts';
import { CONNECTION_NAME } from '../connection/grant.ts';
import { SHORT_REASONS } from '../connection/history.ts';
import { connectHub } from '../hub-connection.ts';
import { parseDurationSeconds } from '../terminal/duration.ts';
import { print, printable, printJson, printStderr, reportFailure } from '../terminal/output.ts';
import { pairingFailedText } from './failure-texts.ts';
import { type LanguageOption, languageOption } from './label-language.ts';
import { type PairOptions, pairConnection, reportWatchStopped, showPairing } from './pair-connection.ts';

interface Options extends PairOptions, LanguageOption {
  readonly all?: boolean;
  readonly print?: boolean;
  readonly output?: string;
  readonly byAddress?: boolean;
  readonly yes?: boolean;
  readonly paste?: string;
}

/** `latchkey pair NAME`, and `latchkey pair --all` */
export function pairCommand(): Command {
  return new Command('pair')
    .description(
      'connect an appliance, or a connection that several share: shows a login link, and waits for the login',
    )
    .argument('[name]', CONNECTION_NAME)
    .option('--all', 'pair all connections that need it, one after another')
    .option('--no-wait', 'show the link and end, without waiting for the login')
    .option(
      '--timeout <duration>',
      'stop waiting after this time, such as 45 or 45s (seconds) or 10m; the pairing continues',
      parseDurationSeconds,
    )
    .option(
      '--paste <address>',
      'hand over the address on which the browser ended after the login, to the pairing that is open; "-" reads it from standard input, where other users of the machine cannot see it',
    )
    .option('--print', "make a label for the appliance's cabinet; scanning it starts a new pairing")
    .option('--output <file>', 'with --print: the file for the label (default: latchkey-NAME.svg)')
    .option('--by-address', "with --print: the QR code contains the hub's current IP address instead of its name")
    .addOption(languageOption())
    .option('--yes', 'with --print: overwrite an existing file')
    .option('--json', 'print JSON, one object per line')
    .action(pair);
}

async function pair(name: string | undefined, options: Options, command: Command): Promise<void> {
  const { all, print, output, byAddress, language, yes, paste } = options;
  if (all === true && name !== undefined) command.error('error: give a name or --all, not both');
  if (all === true && print === true) command.error('error: --print is for one appliance: give its name');
  if (all !== true && name === undefined) command.error('error: give the name of an appliance, or --all');
  if (paste !== undefined && (name === undefined || print === true))
    command.error('error: --paste is for one pairing that is open: give its name, without --all and --print');
  const labelOption = [
    output !== undefined && '--output',
    byAddress && '--by-address',
    language && '--language',
    yes && '--yes',
  ].find(Boolean);
  if (labelOption && print !== true) command.error(`error: ${labelOption} can only be used with --print`);
  await using hub = await connectHub(command);
  if (name === undefined) return await pairAll(hub, options);
  if (paste !== undefined) {
    const { pasteAddress } = await import('./paste.ts');
    return await pasteAddress(hub, name, paste, options);
  }
  if (print !== true) return await pairConnection(hub, name, options);
  const { printLabel } = await import('./label.ts');
  return await printLabel(hub, name, options);
}

/**
 * `latchkey pair --all`: shows the links of the connections one after another, each when the pairing before it has
 * ended, with or without success. If the user continues on a phone, this display follows.
 */
async function pairAll(hub: ControlClient, options: PairOptions): Promise<void> {
  const clock = systemClock('');
  const startedAt = clock.now().uptime;
  let batch = await hub.request('pairAll');
  while (batch.current !== null) {
    const { pairing, connection } = batch.current;
    const title = printable(batch.titles[connection] ?? connection);
    const { timeout } = options;
    const remaining =
      timeout === undefined ? {} : { timeout: Math.max(0, timeout - (clock.now().uptime - startedAt) / 1000) };
    const names = { connection, isShared: (await sharedConnections(hub)).has(connection) };
    const outcome = await showPairing(hub, pairing, title, { ...options, ...remaining }, names);
    switch (outcome.kind) {
      case 'link_shown':
        return;
      case 'failed':
        printStderr(`latchkey: ${pairingFailedText(title, outcome)}`);
        break;
      case 'paired':
        break;
      default: {
        const all = (await sharedConnections(hub)).size > 0 ? 'connections' : 'appliances';
        const late = `not all ${all} were paired within ${formatDuration(timeout ?? 0)} (${title} is not connected yet)`;
        return reportWatchStopped(
          outcome,
          late,
          'the hub keeps trying: run "latchkey pair --all" again to see the login link',
        );
      }
    }
    batch = await hub.request('nextPairing', { id: batch.id });
  }
  const noun = (await sharedConnections(hub)).size > 0 ? 'connection' : 'appliance';
  reportPairAll(batch, noun, options.json === true);
}

/** The names of the connections that are not the own connection of one appliance. */
async function sharedConnections(hub: ControlClient): Promise<ReadonlySet<string>> {
  const { connections } = await hub.request('status');
  return new Set(connections.filter(({ own }) => own !== true).map(({ name }) => name));
}

/** @param noun what the names are of: of connections if one is shared, otherwise of appliances */
function reportPairAll(
  { titles, connected, skipped, differentAccounts }: PairingBatch,
  noun: 'appliance' | 'connection',
  json: boolean,
): void {
  const titleOf = (name: string) => printable(titles[name] ?? name);
  const done = noun === 'connection' ? 'paired' : 'connected';
  if (differentAccounts.length > 0) {
    const each = differentAccounts
      .map(({ connection, account }) => `${titleOf(connection)} (${printable(account)})`)
      .join(', ');
    printStderr(
      `the ${noun}s were ${done} with different accounts: ${each}; if this is a mistake, run "latchkey pair NAME" for the ${noun} that has the wrong account, and log in with the right one`,
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
    const named = [`The ${noun} is ${done}`, `Both ${noun}s are ${done}`][all - 1];
    if (!json) print(named ?? `All ${all} ${noun}s are ${done}`);
    return;
  }
  const missing = skipped.map(({ name, reason }) => `${titleOf(name)} (${SHORT_REASONS[reason]})`).join(', ');
  const approval = skipped.find(({ reason }) => reason === 'waiting_for_approval');
  const next =
    approval !== undefined && skipped.every(({ reason }) => reason === 'waiting_for_approval')
      ? `approve them first: "latchkey appliance approve ${approval.name}"`
      : 'run "latchkey pair --all" again for those';
  reportFailure(`${connected.length} of ${all} ${noun}s are ${done}; not ${done}: ${missing}; ${next}`);
}
