import { Command } from 'commander';
import type { SetupCodeResponse } from '../control/messages.ts';
import type { ReloadOutcome } from '../core/administration.ts';
import { applyInstruction } from '../core/portal.ts';
import { systemTimers } from '../system/clock.ts';
import { configPathOf, connectHub, isHubUnavailable } from './hub-connection.ts';
import { formatDuration } from './terminal/duration.ts';
import { print, printable, printJson, printStderr, reportFailure } from './terminal/output.ts';

/** How often it is asked how the reload stands, in ms. */
const POLL_INTERVAL = 250;
/** How long there may be no hub before it is given up, in ms: a slow disk makes for a slow start. */
const HUB_ABSENCE_TIMEOUT = 60_000;
/** Where the service of systemd's is asked. */
const SERVICE_SOCKET = '/run/latchkey/control.sock';
/** How long systemd may take to tell of the service, in ms. */
const UNIT_TIMEOUT = 4000;

/** `latchkey reload` */
export function reloadCommand(): Command {
  return new Command('reload')
    .description('reload the configuration; an invalid file is rejected and the old one stays in force')
    .action(async (_options: unknown, command: Command) => {
      const changed = await changedServiceCredentials(command);
      if (changed !== null && changed.length > 0) {
        const { restartNeededText: restartFor } = await import('../doctor/credentials.ts');
        return reportFailure(`nothing was reloaded: ${restartFor(changed)}`);
      }
      const id = await startReload(command);
      const outcome = await waitForReload(id, command);
      switch (outcome.state) {
        case 'done':
          if (changed === null) {
            printStderr(
              'only root can see whether a secret in /etc/latchkey/credentials was changed: that takes a restart',
            );
          }
          return print('The hub runs with the configuration as it is now.');
        case 'failed':
          return reportFailure(outcome.message);
        default:
          return reportFailure('the hub was started anew meanwhile: its log says why');
      }
    });
}

/** As {@link findChangedCredentials}; none where the hub that is asked is no service of systemd's. */
async function changedServiceCredentials(command: Command): Promise<string[] | null> {
  const { controlSocketCandidates: controlSockets } = await import('../configuration/file.ts');
  const [socket] = await controlSockets(configPathOf(command), process.env);
  if (socket !== SERVICE_SOCKET) return [];
  const [{ loadedCredentialsDirectory: loadedBy, readUnit }, { findChangedCredentials: changedCredentials }] =
    await Promise.all([import('../doctor/systemd-unit.ts'), import('../doctor/credentials.ts')]);
  const unit = await readUnit(AbortSignal.timeout(UNIT_TIMEOUT), process.env);
  if (unit === null || unit.mainPid === 0 || unit.credentials.length === 0) return [];
  return changedCredentials(unit.credentials, process.env, loadedBy(unit));
}

async function startReload(command: Command): Promise<string> {
  await using hub = await connectHub(command);
  return await hub.reload();
}

/** Waits until the reload has ended. The hub goes meanwhile, and another one comes. */
async function waitForReload(id: string, command: Command): Promise<ReloadOutcome> {
  for (let gone = 0; ; ) {
    await systemTimers.sleep(POLL_INTERVAL);
    try {
      await using hub = await connectHub(command);
      const outcome = await hub.reloadOutcome(id);
      if (outcome.state !== 'under_way') return outcome;
      gone = 0;
    } catch (error) {
      gone += POLL_INTERVAL;
      if (!isHubUnavailable(error) || gone > HUB_ABSENCE_TIMEOUT) throw error;
    }
  }
}

interface SetupCodeOptions {
  readonly rotate?: boolean;
  readonly json?: boolean;
}

/** `latchkey setup-code` */
export function setupCodeCommand(): Command {
  return new Command('setup-code')
    .description("print the setup code of the hub's page; on a terminal also a QR code that signs a phone in once")
    .option('--rotate', 'make another code first; whoever is signed in to the page is signed out')
    .option('--json', 'print JSON')
    .action(async (options: SetupCodeOptions, command: Command) => {
      await using hub = await connectHub(command);
      const answer = await (options.rotate === true ? hub.rotateSetupCode() : hub.setupCode());
      if (options.rotate === true) {
        printStderr('the setup code is another one now, and whoever was signed in to the page is signed out');
      }
      if (options.json === true) printJson(answer);
      else if (process.stdout.isTTY) await showSetupCode(answer);
      else print(answer.code);
    });
}

/** What a person types comes last: it is seen where the whole is higher than the terminal, too. */
async function showSetupCode({ code, page, sign_in, expires_in }: SetupCodeResponse): Promise<void> {
  print(`To sign in on a phone, scan this. It is good once, for ${formatDuration(expires_in)}.
The browser warns of the hub's certificate once: it is the hub's own.`);
  const { missingQrCodeText: noRoomFor, renderQrCode: qrCode } = await import('./terminal/qr-code.ts');
  const drawn = qrCode(sign_in, process.stdout);
  if (drawn === null) printStderr(`${noRoomFor(sign_in, process.stdout)}\n`);
  else print(drawn);
  print(`  ${printable(sign_in)}

Setup code   ${code}
Page         ${printable(page)}`);
}

/** `latchkey notify --test` */
export function notifyCommand(): Command {
  return new Command('notify')
    .description('try whether notices arrive')
    .requiredOption('--test', 'send a notice that means nothing through every hook of [notify]')
    .option('--json', 'print JSON')
    .action(async (options: { json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const trials = await hub.testNotices();
      if (options.json === true) printJson(trials);
      else {
        for (const { hook, target, ok, detail } of trials) {
          print(printable(`${hook} ${target}: ${ok ? 'ok' : 'failed'} (${detail})`));
        }
      }
      const failed = trials.filter(({ ok }) => !ok);
      if (trials.length === 0) {
        const { test_mode } = (await hub.status()).hub;
        const apply = applyInstruction(test_mode === true ? { appliedBy: 'new_start' } : {});
        reportFailure(`no hook is configured: set command or webhook in [notify], and ${apply}`);
      } else if (failed.length > 0) {
        const which = failed.map(({ hook }) => hook).join(' and the ');
        reportFailure(`the ${which} of [notify] did not take the notice: mend that, and try again`);
      }
    });
}
