import { Command } from 'commander';
import type { ControlClient } from '../control/client.ts';
import type { SetupCodeResponse } from '../control/messages.ts';
import { formatDuration } from '../core/clock.ts';
import { howToApplyCorrection } from '../core/portals/identity.ts';
import {
  configPathOf,
  connectHub,
  LOST_RELOAD,
  SERVICE_SOCKET,
  UNIT_TIMEOUT,
  waitForReload,
} from './hub-connection.ts';
import { type LanguageOption, labelTexts, languageOption } from './pair/label-language.ts';
import { print, printable, printJson, printStderr, reportFailure } from './terminal/output.ts';

/** `latchkey reload` */
export function reloadCommand(): Command {
  return new Command('reload')
    .description('reload the configuration; an invalid file is rejected and the old one stays in force')
    .action(async (_options: unknown, command: Command) => {
      const changed = await changedServiceCredentials(command);
      if (changed !== null && changed.length > 0) {
        const { restartNeededText } = await import('../doctor/credentials.ts');
        return reportFailure(`the configuration was not reloaded: ${restartNeededText(changed)}`);
      }
      const id = await startReload(command);
      const outcome = await waitForReload(id, command);
      switch (outcome.state) {
        case 'done':
          if (changed === null) {
            printStderr(
              'only root can check whether a secret in /etc/latchkey/credentials was changed; if you changed one, restart the hub: sudo systemctl restart latchkey',
            );
          }
          return print('The hub now uses the current configuration.');
        case 'failed':
          return reportFailure(outcome.message);
        default:
          return reportFailure(LOST_RELOAD);
      }
    });
}

/** The result of {@link findChangedCredentials}; empty if the hub is not the systemd service. */
async function changedServiceCredentials(command: Command): Promise<string[] | null> {
  const { controlSocketCandidates } = await import('../configuration/file.ts');
  const [socket] = await controlSocketCandidates(configPathOf(command), process.env);
  if (socket !== SERVICE_SOCKET) return [];
  const [{ loadedCredentialsDirectory, readUnit }, { findChangedCredentials }] = await Promise.all([
    import('../doctor/systemd-unit.ts'),
    import('../doctor/credentials.ts'),
  ]);
  const unit = await readUnit(AbortSignal.timeout(UNIT_TIMEOUT), process.env);
  if (unit === null || unit.mainPid === 0 || unit.credentials.length === 0) return [];
  return findChangedCredentials(unit.credentials, process.env, loadedCredentialsDirectory(unit));
}

async function startReload(command: Command): Promise<string> {
  await using hub = await connectHub(command);
  return (await hub.request('reload')).reload;
}

interface SetupCodeOptions extends LanguageOption {
  readonly rotate?: boolean;
  readonly once?: boolean;
  /** Make a label for the hub. */
  readonly print?: boolean;
  readonly output?: string;
  readonly yes?: boolean;
  readonly json?: boolean;
}

/** `latchkey setup-code` */
export function setupCodeCommand(): Command {
  return new Command('setup-code')
    .description("print the setup code of the hub's page; on a terminal also a QR code that signs a phone in once")
    .option('--rotate', 'create a new code first; everybody who is signed in to the page is signed out')
    .option('--once', 'print only the one-time address, which an output that is kept may contain')
    .option('--print', 'make a label for the hub, with the code and a QR code of the page')
    .option('--output <file>', 'with --print: the file for the label (default: ID-OF-THE-HUB.svg)')
    .addOption(languageOption())
    .option('--yes', 'with --print: overwrite an existing file')
    .option('--json', 'print JSON')
    .action(async (options: SetupCodeOptions, command: Command) => {
      const labelOption = [
        options.output !== undefined && '--output',
        options.language && '--language',
        options.yes && '--yes',
      ].find(Boolean);
      if (labelOption && options.print !== true) command.error(`error: ${labelOption} can only be used with --print`);
      await using hub = await connectHub(command);
      const setupCode = await (options.rotate === true ? hub.request('rotateSetupCode') : hub.request('setupCode'));
      if (options.rotate === true) {
        printStderr('there is a new setup code, and everybody was signed out of the page');
      }
      if (options.print === true) await printHubLabel(hub, setupCode, options);
      else if (options.json === true) {
        const { id, name, ca_fingerprint } = (await hub.request('status')).hub;
        printJson({ id, name, ca_fingerprint, ...setupCode });
      } else if (process.stdout.isTTY) await showSetupCode(setupCode, options.once !== true);
      else print(options.once === true ? printable(setupCode.sign_in) : setupCode.code);
    });
}

/** The label has no one-time address and no address of the network in which it is printed, because the hub may leave it. */
async function printHubLabel(
  hub: ControlClient,
  setupCode: SetupCodeResponse,
  options: SetupCodeOptions,
): Promise<void> {
  const { outputLabel } = await import('./pair/label.ts');
  const { id, name } = (await hub.request('status')).hub;
  const { code, stable_page: link } = setupCode;
  const { setUp, setupCodeOf } = labelTexts(options);
  const content = { title: code, hubName: setupCodeOf(name), caption: setUp, link, otherLink: null };
  const file = options.output ?? `${id}.svg`;
  await outputLabel(content, file, options, { code, link, file }, 0o600);
}

/** The code to type comes last: it stays visible even if the terminal has too few lines for the text. */
async function showSetupCode(
  { code, page, sign_in, expires_in }: SetupCodeResponse,
  showsCode: boolean,
): Promise<void> {
  print(`To sign in on a phone, scan this code. It works once, within ${formatDuration(expires_in)}.
The browser warns about the certificate once, because the hub issued it itself:
choose "Advanced" (or "Details") there and continue.`);
  const { missingQrCodeText, renderQrCode } = await import('./terminal/qr-code.ts');
  const qrCode = renderQrCode(sign_in, process.stdout);
  if (qrCode === null) printStderr(`${missingQrCodeText(sign_in, process.stdout)}\n`);
  else print(qrCode);
  print(`  ${printable(sign_in)}`);
  if (showsCode) print(`\nSetup code   ${code}\nPage         ${printable(page)}`);
}

/** `latchkey notify --test` */
export function notifyCommand(): Command {
  return new Command('notify')
    .description('test whether notices arrive')
    .requiredOption('--test', 'send a test notice to every command and webhook of [notify]')
    .option('--json', 'print JSON')
    .action(async (options: { json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const results = await hub.request('testNotices');
      if (options.json === true) printJson(results);
      else {
        for (const { hook, target, ok, detail } of results) {
          print(printable(`${hook} ${target}: ${ok ? 'ok' : 'failed'} (${detail})`));
        }
      }
      const failed = results.filter(({ ok }) => !ok);
      if (results.length === 0) {
        const { test_mode } = (await hub.request('status')).hub;
        const apply = howToApplyCorrection(test_mode === true ? { appliedBy: 'new_start' } : {});
        reportFailure(
          `no hook is configured: set command or webhook under [notify] in the configuration, and ${apply}`,
        );
      } else if (failed.length > 0) {
        const which = failed.map(({ hook }) => hook).join(' and the ');
        reportFailure(
          `the test notice could not be sent to the ${which} of [notify]: fix what the output above says, and try again`,
        );
      }
    });
}
