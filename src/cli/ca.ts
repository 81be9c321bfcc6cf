import { Command, InvalidArgumentError, Option } from 'commander';
import type { ControlClient } from '../control/client.ts';
import type { CaStatus } from '../core/administration.ts';
import { Failure } from '../core/failure.ts';
import { connectHub } from './hub-connection.ts';
import { durationParser } from './terminal/duration.ts';
import { print, printJson, printStderr } from './terminal/output.ts';
import { confirmWarning } from './terminal/prompt.ts';

interface Options {
  readonly fingerprint?: boolean;
  readonly old?: boolean;
  readonly rotate?: boolean;
  /** Seconds. */
  readonly keepOld?: number;
  readonly yes?: boolean;
  readonly install?: true;
  readonly uninstall?: true;
  readonly from?: URL;
  readonly pin?: string;
  readonly json?: boolean;
}

/** How long the old CA stays valid after a rotation if `--keep-old` is not given, in seconds. */
const DEFAULT_KEEP_OLD_SECONDS = 30 * 86_400;

/** The options that print something of the hub's CA, or change it. */
const REPORTS = ['fingerprint', 'old', 'rotate', 'keepOld', 'json'];

/** `latchkey ca` */
export function caCommand(): Command {
  return new Command('ca')
    .description("print the hub's CA certificate (PEM), or replace the CA")
    .option('--fingerprint', "print the CA pin (ca_fingerprint) instead: the base64url SHA-256 of the CA's public key")
    .option('--old', 'print the previous CA, during a rotation')
    .option('--rotate', 'create a new CA; appliances that trust the old one are still served for a while')
    .option(
      '--keep-old <duration>',
      'how long the old CA stays valid: 1s to 365d, or 0 to end it at once (default: 30d); without --rotate it applies to the rotation in progress',
      parseKeepOld,
    )
    .option('--yes', 'do not ask for confirmation; required for a change without a terminal')
    .addOption(
      new Option('--install', 'let the programs of this machine trust the hub (Debian; needs root)').conflicts(REPORTS),
    )
    .addOption(new Option('--uninstall', 'undo --install').conflicts(['install', ...REPORTS]))
    .option(
      '--from <url>',
      'with --install or --uninstall: the hub is another machine, such as https://192.168.1.20:8443',
      parseOrigin,
    )
    .option('--pin <pin>', "with --install --from: the hub's pin, which --fingerprint prints there")
    .option('--json', 'print certificates and pins as JSON')
    .action(async (options: Options, command: Command) => {
      if (options.install || options.uninstall) return changeTrust(options, command);
      if (options.from !== undefined || options.pin !== undefined)
        command.error('error: --from and --pin can only be used with --install or --uninstall');
      await using hub = await connectHub(command);
      const change = planChange(options, hub);
      if (change !== null && options.yes !== true && !(await confirmWarning(change.warning))) return;
      const report = await (change?.run() ?? hub.request('authority'));
      if (change !== null) printStderr(change.doneText(report));
      printReport(report, options, change !== null);
    });
}

/** `latchkey ca --install`, and `--uninstall` */
async function changeTrust({ install, from, pin }: Options, command: Command): Promise<void> {
  const { changeMachineTrust } = await import('./machine-trust.ts');
  // With its port: a machine may have several hubs.
  const name = from === undefined ? 'latchkey' : `latchkey-${from.host.replaceAll(/[^a-z0-9.-]/g, '-')}`;
  if (!install) {
    await changeMachineTrust(name, null);
    return printStderr('the programs of this machine no longer trust the hub');
  }
  if ((from === undefined) !== (pin === undefined)) command.error('error: --from and --pin belong together');
  await changeMachineTrust(name, await fetchCertificate(command, from, pin));
  printStderr(
    'programs of this machine that use its list of CAs trust the hub when they start again; repeat this command after "latchkey ca --rotate"',
  );
}

/** The hub's CA: of the running one, or of another machine. */
async function fetchCertificate(command: Command, from?: URL, pin = ''): Promise<string> {
  if (from !== undefined) return (await import('./hub-trust.ts')).fetchPinnedCa(from.origin, pin);
  await using hub = await connectHub(command);
  return (await hub.request('authority')).certificate;
}

/** A requested change, and what it means for appliances. */
interface CaChange {
  readonly warning: string;
  run(): Promise<CaStatus>;
  /** The text to print after the change. */
  doneText(report: CaStatus): string;
}

const OLD_CA_ENDED_TEXT =
  'appliances that trust only the old CA cannot connect until you give them the new one, which "latchkey ca" prints';

function planChange({ rotate, keepOld }: Options, hub: ControlClient): CaChange | null {
  if (rotate === true) {
    const keep = keepOld ?? DEFAULT_KEEP_OLD_SECONDS;
    return {
      warning:
        keep === 0
          ? 'The hub gets a new CA. Appliances that trust the current CA cannot connect until you give them the new one.'
          : 'The hub gets a new CA. Give it to all appliances before the old CA expires. Until then, a thief who has the old key can still impersonate the hub to appliances that trust the old CA.',
      run: () => hub.request('rotateAuthority', { keep }),
      doneText: ({ fingerprint, old }) =>
        old === undefined
          ? `the hub has a new CA (${fingerprint}); ${OLD_CA_ENDED_TEXT}`
          : `the hub has a new CA (${fingerprint}); ${oldCaServedText(old.until)}`,
    };
  }
  if (keepOld === undefined) return null;
  return {
    warning:
      keepOld === 0
        ? 'Appliances that trust only the old CA cannot connect until you give them the new one.'
        : 'This changes the time at which the old CA expires.',
    run: () => hub.request('keepOldAuthority', { keep: keepOld }),
    doneText: ({ old }) => (old === undefined ? OLD_CA_ENDED_TEXT : oldCaServedText(old.until)),
  };
}

function oldCaServedText(until: string | null): string {
  const end = until ?? "it expires; the hub sets that time when NTP or the portal has confirmed the hub's clock";
  return `appliances that trust the old CA are served until ${end}`;
}

function printReport(report: CaStatus, { fingerprint, old, json }: Options, wasChanged: boolean): void {
  if (json === true) {
    printJson(report);
    return;
  }
  if (old === true && report.old === undefined) {
    throw new Failure('not_allowed', 'there is no old CA: the CA was never rotated, or the old one has expired');
  }
  const shown = old === true && report.old !== undefined ? report.old : report;
  print(fingerprint === true ? shown.fingerprint : shown.certificate.trimEnd());
  if (report.old !== undefined && old !== true && !wasChanged) {
    printStderr(`${oldCaServedText(report.old.until)}: "latchkey ca --old" prints it`);
  }
}

function parseOrigin(text: string): URL {
  const url = URL.parse(text);
  if (url?.protocol === 'https:') return url;
  throw new InvalidArgumentError('Must be the address of a hub, such as https://192.168.1.20:8443');
}

const parseKeepDuration = durationParser('1s', '365d');

/** @returns seconds; 0 to end it at once */
function parseKeepOld(text: string): number {
  if (/^0+[smhd]?$/.test(text)) return 0;
  try {
    return parseKeepDuration(text);
  } catch {
    throw new InvalidArgumentError('Must be 1s to 365d, or 0.');
  }
}
