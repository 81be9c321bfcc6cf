import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { CLOUD_NAMES } from '../../clouds/catalogue.ts';
import { Failure } from '../../core/failure.ts';
import type { ClientOptions, Emulator, EmulatorOptions, UserOptions } from '../../emulator/index.ts';
import type { SettingDefinition } from '../../emulator/settings/definitions.ts';
import { SETTINGS } from '../../emulator/settings/settings.ts';
import { didYouMean } from '../../system/did-you-mean.ts';
import { collectText } from '../terminal/collect-text.ts';
import { parseDurationSeconds, parseNonNegativeInteger } from '../terminal/duration.ts';
import { print, printJson, printStderr } from '../terminal/output.ts';
import { waitForTerminationSignal } from '../terminal/signals.ts';
import { examCommand } from './exam.ts';
import { readOptionsFile } from './options-file.ts';

/** The values of the flags: the library's options; repeatable flags have other names. */
interface Options
  extends Omit<EmulatorOptions, 'allowedHosts' | 'issuers' | 'clients' | 'redirectUris' | 'users' | 'faults'> {
  readonly allowedHost?: string[];
  readonly issuer?: string[];
  readonly client?: ClientOptions[];
  readonly redirectUri?: string[];
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
      'another host name that clients may use; may be repeated (default: localhost and --host)',
      collectText,
    )
    .option(
      '--client <id:secret>',
      'a client; without a secret a public one; may be repeated (default: a generated one)',
      collectClient,
    )
    .option(
      '--redirect-uri <uri>',
      'an address at which these clients may receive codes of /oauth2/; may be repeated (default: none; for the generated client every http address of this machine)',
      collectText,
    )
    .option(
      '--issuer <name>',
      'another issuer, at the frontend URL with /NAME; may be repeated (default: none)',
      collectText,
    )
    .addOption(
      new Option(
        '--profile <name>',
        'behave at /oauth2/ like this cloud; other options given beside it win (default: none)',
      )
        .choices(CLOUD_NAMES)
        .argParser(parseProfile),
    )
    .option('--user <name:password>', 'a user who can log in; may be repeated (default: demo:demo)', collectUser)
    .option(
      '--state <file>',
      'store issued tokens, findings and the clock in this file; changed settings, faults and the log are not stored',
    )
    .option('--tls', 'serve both URLs over HTTPS, with a private CA')
    .option('--ca-file <file>', 'with --tls: where to write the CA (default: a temporary file; its name is printed)')
    .option('--show-secrets', 'show codes, tokens and secrets in the request log, for tests')
    .option('--fault <json>', 'a fault to inject, in the JSON format of the API; may be repeated', collectText)
    .option('--seed <n>', 'seed of the random numbers for fault probabilities (default: 0)', parseNonNegativeInteger)
    .option(
      '--options <file>',
      'a TOML or JSON file with options, their names written with underscores; options on the command line take precedence',
    )
    .option('--json', 'print its addresses and credentials as one line of JSON');
  for (const [name, setting] of Object.entries(SETTINGS)) command.addOption(settingOption(flagNameOf(name), setting));
  command.addCommand(examCommand());
  return command.action(async ({ options: file }: Options) => {
    // Before the first output: a program that reads it may send a signal at once.
    const terminated = waitForTerminationSignal();
    const { SystemdNotifier } = await import('../../system/systemd-notifier.ts');
    const service = new SystemdNotifier();
    if (file !== undefined) await readOptionsFile(command, file);
    const options = chosenOptions(command);
    await using folder = options.tls === true && options.caFile === undefined ? await temporaryFolder() : null;
    const caFile = folder === null ? options.caFile : join(folder.path, 'ca.pem');
    await using emulator = await startFromOptions({ ...options, ...(caFile === undefined ? {} : { caFile }) }, command);
    printEmulator(emulator, caFile, options);
    service.ready(`${emulator.baseUrl} and ${emulator.frontendUrl}`);
    await terminated;
    service.stopping();
  });
}

/** The options that were given: the default of a flag `--no-…` must not override a profile. */
function chosenOptions(command: Command): Options {
  const all = Object.entries(command.opts<Options>());
  return Object.fromEntries(all.filter(([name]) => command.getOptionValueSource(name) !== 'default'));
}

/** The flag of a setting: how the emulated portal behaves where real portals differ. */
function settingOption(name: string, { values, initial, nothing, description }: SettingDefinition<unknown>): Option {
  const value = values.kind === 'seconds' && initial ? `${initial}s` : initial;
  const defaultText = initial === null ? nothing : [value, ...(nothing === undefined ? [] : [nothing])].join(', ');
  const help = `${description} (default: ${defaultText})`;
  switch (values.kind) {
    case 'boolean':
      return initial === true
        ? new Option(`--no-${name}`, `do not ${description}`)
        : new Option(`--${name}`, description);
    case 'choice':
      return new Option(`--${name} <what>`, help).choices(values.choices);
    case 'count':
      return new Option(`--${name} <n>`, help).argParser(parseNonNegativeInteger);
    case 'seconds':
      return new Option(`--${name} <duration>`, help).argParser((text) =>
        text === '0' && values.range === 'from 0' ? 0 : parseDurationSeconds(text),
      );
    case 'regular expression':
      return new Option(`--${name} <regexp>`, help);
    case 'text':
      return new Option(`--${name} <text>`, help);
  }
}

async function startFromOptions(given: Options, command: Command): Promise<Emulator> {
  const { allowedHost, issuer, client, redirectUri, user, fault, json: _, options: __, ...options } = given;
  const { FaultError, OptionError, parseFault, startEmulator, StateFileError } = await import(
    '../../emulator/index.ts'
  );
  try {
    return await startEmulator({
      ...options,
      allowedHosts: allowedHost,
      issuers: issuer,
      clients: client,
      redirectUris: redirectUri,
      users: user,
      faults: fault?.map(parseFault),
    });
  } catch (error) {
    if (error instanceof FaultError) command.error(`error: --fault: ${error.message}`);
    if (error instanceof OptionError) command.error(`error: ${withFlagName(error.message)}`);
    if (error instanceof StateFileError)
      throw new Failure('store_unreadable', error.message, { cause: error, includesCause: true });
    throw new Failure(
      'port_unavailable',
      "the emulator can't listen on this address or port: choose another --host, --port or --frontend-port",
      { cause: error },
    );
  }
}

/** Replaces the library's option name with the flag: `frontendPort: …` becomes `--frontend-port: …`. */
function withFlagName(message: string): string {
  const flag = message
    .replace(/^(allowedHost|issuer|client|redirectUri|user|fault)s(?:\.\d+)?:/, '$1:')
    .replace(/^\w+(?=:)/, flagNameOf);
  return `--${flag}`;
}

/** `frontend-port` for `frontendPort`. */
function flagNameOf(option: string): string {
  return option.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** A folder for the CA file, which is deleted when the emulator ends. Node 22 lacks `mkdtempDisposable`. */
async function temporaryFolder(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'latchkey-emulator-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

function printEmulator(
  { baseUrl, frontendUrl, clientId, clientSecret, consoleUrl }: Emulator,
  caFile: string | undefined,
  { json, client, issuer = [] }: Options,
): void {
  if (json === true) {
    printJson({
      base_url: baseUrl,
      frontend_url: frontendUrl,
      client_id: clientId,
      client_secret: clientSecret,
      console_url: consoleUrl,
      issuer: frontendUrl,
      ca_file: caFile,
    });
    return;
  }
  print(`The portal emulator is running.

  base_url       ${baseUrl}
  frontend_url   ${frontendUrl}   (the issuer)${issuer.map((name) => `\n  issuer         ${frontendUrl}/${name}`).join('')}
  client_id      ${client?.map(({ id }) => id).join(', ') ?? clientId}
  client_secret  ${client === undefined ? clientSecret || 'none' : 'as given'}
  console        ${consoleUrl}${
    caFile === undefined
      ? ''
      : `
  ca_file        ${caFile}`
  }
`);
  printStderr('Ctrl-C ends it.');
}

function parseProfile(name: string): string {
  if (CLOUD_NAMES.some((one) => one === name)) return name;
  throw new InvalidArgumentError(`Allowed choices are ${CLOUD_NAMES.join(', ')}.${didYouMean(name, CLOUD_NAMES)}`);
}

function collectClient(text: string, before: readonly ClientOptions[] = []): ClientOptions[] {
  if (!text.includes(':')) return [...before, { id: text }];
  const [id, secret] = splitPair(text, 'ID:SECRET or ID');
  return [...before, { id, secret }];
}

function collectUser(text: string, before: readonly UserOptions[] = []): UserOptions[] {
  const [name, password] = splitPair(text, 'NAME:PASSWORD');
  return [...before, { name, password }];
}

function splitPair(text: string, form: string): [string, string] {
  const colon = text.indexOf(':');
  if (colon < 1 || colon === text.length - 1) throw new InvalidArgumentError(`Must be ${form}.`);
  return [text.slice(0, colon), text.slice(colon + 1)];
}
