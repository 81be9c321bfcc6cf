import { Command, InvalidArgumentError } from 'commander';
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
  readonly json?: boolean;
}

/** Seconds for which an old CA is kept, where nobody says. */
const DEFAULT_KEEP_OLD_SECONDS = 30 * 86_400;

/** `latchkey ca` */
export function caCommand(): Command {
  return new Command('ca')
    .description("print the hub's CA certificate (PEM), or put another CA in its place")
    .option('--fingerprint', 'print its pin instead: the base64url SHA-256 of its public key')
    .option('--old', 'print the CA before it, while a rotation lasts')
    .option('--rotate', 'make another CA; appliances that trust the old one are served for a while')
    .option(
      '--keep-old <duration>',
      'for how long: 1s to 365d, or 0 to end that at once (default: 30d); without --rotate it changes a rotation that lasts',
      parseKeepOld,
    )
    .option('--yes', 'do not ask back; needed for a change without a terminal')
    .option('--json', 'print certificates and pins as JSON')
    .action(async (options: Options, command: Command) => {
      await using hub = await connectHub(command);
      const change = planChange(options, hub);
      if (change !== null && options.yes !== true && !(await confirmWarning(change.warning))) return;
      const report = await (change?.run() ?? hub.authority());
      if (change !== null) printStderr(change.doneText(report));
      printReport(report, options, change !== null);
    });
}

/** What is to be changed, and what that means for appliances. */
interface CaChange {
  readonly warning: string;
  run(): Promise<CaStatus>;
  /** What is said then. */
  doneText(report: CaStatus): string;
}

function planChange({ rotate, keepOld }: Options, hub: ControlClient): CaChange | null {
  if (rotate === true) {
    const keep = keepOld ?? DEFAULT_KEEP_OLD_SECONDS;
    return {
      warning:
        keep === 0
          ? 'The hub gets another CA, and every appliance that trusts the CA of now is cut off until it is given the new one.'
          : 'The hub gets another CA. Appliances must be given the new one before the time of the old one is over; until then whoever has stolen its key can still pass for the hub towards those that trust it.',
      run: () => hub.rotateAuthority(keep),
      doneText: ({ fingerprint, old }) =>
        old === undefined
          ? `the hub has another CA (${fingerprint}), and appliances that trust the one before are served no longer`
          : `the hub has another CA (${fingerprint}); ${oldCaServedText(old.until)}`,
    };
  }
  if (keepOld === undefined) return null;
  return {
    warning:
      keepOld === 0
        ? 'Every appliance that trusts the old CA alone is cut off until it is given the new one.'
        : 'The old CA gets another end.',
    run: () => hub.keepOldAuthority(keepOld),
    doneText: ({ old }) =>
      old === undefined ? 'appliances that trust the old CA alone are served no longer' : oldCaServedText(old.until),
  };
}

function oldCaServedText(until: string | null): string {
  const end = until ?? 'its time is over, which begins to run when the clock is confirmed';
  return `appliances that trust the old CA are served until ${end}`;
}

function printReport(report: CaStatus, { fingerprint, old, json }: Options, wasChanged: boolean): void {
  if (json === true) {
    printJson(report);
    return;
  }
  if (old === true && report.old === undefined) {
    throw new Failure('not_allowed', 'there is no old CA: there was no rotation, or its time is over');
  }
  const shown = old === true && report.old !== undefined ? report.old : report;
  print(fingerprint === true ? shown.fingerprint : shown.certificate.trimEnd());
  if (report.old !== undefined && old !== true && !wasChanged) {
    printStderr(`${oldCaServedText(report.old.until)}: "latchkey ca --old" prints it`);
  }
}

const parseKeepDuration = durationParser('1s', '365d');

/** @returns seconds; 0 for not at all */
function parseKeepOld(text: string): number {
  if (/^0+[smhd]?$/.test(text)) return 0;
  try {
    return parseKeepDuration(text);
  } catch {
    throw new InvalidArgumentError('Allowed is 1s to 365d, or 0.');
  }
}
