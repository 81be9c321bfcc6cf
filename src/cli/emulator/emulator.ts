import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { Failure } from '../../core/failure.ts';
import type { ClientOptions, Emulator, EmulatorOptions, UserOptions } from '../../emulator/index.ts';
import { SETTINGS, type SettingDefinition } from '../../emulator/settings/settings.ts';
import { parseDurationSeconds, parseNonNegativeInteger } from '../terminal/duration.ts';
import { print, printJson, printStderr } from '../terminal/output.ts';
import { waitForTerminationSignal } from '../terminal/signals.ts';
import { readOptionsFile } from './options-file.ts';

/** What the flags give: the library's options, those that may be given again under other names. */
interface Options extends Omit<EmulatorOptions, 'allowedHosts' | 'clients' | 'users' | 'faults'> {
  readonly allowedHost?: string[];
  readonly client?: ClientOptions[];
  readonly user?: UserOptions[];
  readonly fault?: string[];
  readonly options?: string;
  readonly json?: boolean;
}

/** `latchkey emulator` */
export function emulatorCommand(): Command {
  const command = new Command('emulator')
    .description('run the portal emulator, for tests, demos and appliance developers')
    .option('--host <address>', 'the address to listen on (default: 127.0.0.1)')
    .option('--port <port>', 'port of the base URL (default: any free one)', parseNonNegativeInteger)
    .option('--frontend-port <port>', 'port of the frontend URL (default: any free one)', parseNonNegativeInteger)
    .option(
      '--allowed-host <name>',
      'a further host name that clients may use; may be given again (default: localhost and --host)',
      collectText,
    )
    .option('--client <id:secret>', 'a client, its id a UUID; may be given again (default: a fresh one)', collectClient)
    .option('--user <name:password>', 'somebody who can log in; may be given again (default: demo:demo)', collectUser)
    .option(
      '--state <file>',
      'keep what was issued, findings and the clock in this file (not changed settings, faults and the log)',
    )
    .option('--tls', 'serve both URLs over HTTPS, with a private CA')
    .option('--ca-file <file>', 'where to write the CA with --tls (default: a temporary file, which it names)')
    .option('--show-secrets', 'show codes, tokens and secrets in the request log, for tests')
    .option('--fault <json>', 'a fault that clients meet, as the API takes it; may be given again', collectText)
    .option('--seed <n>', 'what the chance of faults is drawn from (default: 0)', parseNonNegativeInteger)
    .option('--options <file>', "a TOML file with options: the flags' names with underscores; flags win")
    .option('--json', 'print what it runs with as one line of JSON');
  return addSettingOptions(command).action(async ({ options: file }: Options) => {
    // From the start: who reads the first line may send a signal at once.
    const ended = waitForTerminationSignal();
    const { SystemdNotifier } = await import('../../system/systemd-notifier.ts');
    const service = new SystemdNotifier();
    if (file !== undefined) await readOptionsFile(command, file);
    const options = command.opts<Options>();
    await using parts = new AsyncDisposableStack();
    const caFile = options.tls === true ? (options.caFile ?? (await temporaryCaFile(parts))) : options.caFile;
    const emulator = parts.use(
      await startFromOptions({ ...options, ...(caFile === undefined ? {} : { caFile }) }, command),
    );
    printEmulator(emulator, caFile, options);
    service.ready(`${emulator.baseUrl} and ${emulator.frontendUrl}`);
    await ended;
    service.stopping();
  });
}

/** The flags for what the specification leaves open at the portal; what they give are the library's `SettingOptions`. */
function addSettingOptions(command: Command): Command {
  for (const [name, declared] of Object.entries(SETTINGS)) {
    command.addOption(settingOption(flagNameOf(name), declared));
  }
  return command;
}

function settingOption(name: string, { values, initial, nothing, description }: SettingDefinition<unknown>): Option {
  const value = values.kind === 'seconds' && initial ? `${initial}s` : initial;
  const usual = initial === null ? nothing : [value, ...(nothing === undefined ? [] : [nothing])].join(', ');
  const help = `${description} (default: ${usual})`;
  switch (values.kind) {
    case 'boolean':
      return initial === true
        ? new Option(`--no-${name}`, `turn off: ${description}`)
        : new Option(`--${name}`, description);
    case 'choice':
      return new Option(`--${name} <what>`, help).choices(Object.keys(values.choices));
    case 'count':
      return new Option(`--${name} <n>`, help).argParser(parseNonNegativeInteger);
    case 'seconds':
      return new Option(`--${name} <duration>`, help).argParser((text) =>
        text === '0' && values.range === 'from 0' ? 0 : parseDurationSeconds(text),
      );
    case 'regular expression':
      return new Option(`--${name} <regexp>`, help);
  }
}

async function startFromOptions(
  { allowedHost, client, user, fault, json: _, options: __, ...options }: Options,
  command: Command,
): Promise<Emulator> {
  const { FaultError, OptionError, parseFault, startEmulator, StateFileError } = await import(
    '../../emulator/index.ts'
  );
  try {
    const faults = fault?.map(parseFault);
    const settings: EmulatorOptions = { ...options, allowedHosts: allowedHost, clients: client, users: user, faults };
    return await startEmulator(settings);
  } catch (error) {
    if (error instanceof FaultError) command.error(`error: --fault: ${error.message}`);
    if (error instanceof OptionError) command.error(`error: ${withFlagName(error.message)}`);
    if (error instanceof StateFileError) throw new Failure('store_unreadable', error.message, { cause: error });
    throw new Failure(
      'port_unavailable',
      "the emulator can't listen there; choose another --host, --port or --frontend-port",
      {
        cause: error,
      },
    );
  }
}

/** Names the flag instead of the library's option: `frontendPort: …` is `--frontend-port: …`. */
function withFlagName(message: string): string {
  const flag = message
    .replace(/^allowedHosts:/, 'allowedHost:')
    .replace(/^clients:/, 'client:')
    .replace(/^users:/, 'user:')
    .replace(/^faults:/, 'fault:')
    .replace(/^\w+(?=:)/, flagNameOf);
  return `--${flag}`;
}

/** `frontend-port` for `frontendPort`. */
function flagNameOf(option: string): string {
  return option.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** A name for the CA's file in a folder of its own, which goes when the emulator ends. */
async function temporaryCaFile(parts: AsyncDisposableStack): Promise<string> {
  const folder = parts.use(await mkdtempDisposable(join(tmpdir(), 'latchkey-emulator-')));
  return join(folder.path, 'ca.pem');
}

function printEmulator(
  { baseUrl, frontendUrl, clientId, clientSecret, consoleUrl }: Emulator,
  caFile: string | undefined,
  { json, client }: Options,
): void {
  if (json === true) {
    printJson({
      base_url: baseUrl,
      frontend_url: frontendUrl,
      client_id: clientId,
      client_secret: clientSecret,
      console_url: consoleUrl,
      ca_file: caFile,
    });
    return;
  }
  print(`The portal emulator is running.

  base_url       ${baseUrl}
  frontend_url   ${frontendUrl}
  client_id      ${clientId}
  client_secret  ${client === undefined ? clientSecret : 'as given'}
  console        ${consoleUrl}${
    caFile === undefined
      ? ''
      : `
  ca_file        ${caFile}`
  }
`);
  printStderr('Ctrl-C ends it.');
}

function collectClient(text: string, before: readonly ClientOptions[] = []): ClientOptions[] {
  const [id, secret] = splitPair(text, 'ID:SECRET');
  return [...before, { id, secret }];
}

function collectUser(text: string, before: readonly UserOptions[] = []): UserOptions[] {
  const [name, password] = splitPair(text, 'NAME:PASSWORD');
  return [...before, { name, password }];
}

function collectText(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}

function splitPair(text: string, form: string): [string, string] {
  const colon = text.indexOf(':');
  if (colon < 1 || colon === text.length - 1) throw new InvalidArgumentError(`Allowed is ${form}.`);
  return [text.slice(0, colon), text.slice(colon + 1)];
}
