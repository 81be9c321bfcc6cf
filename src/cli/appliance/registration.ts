import { Command, Option } from 'commander';
import type { InviteResponse, OpenRegistrationResponse } from '../../control/messages.ts';
import { connectHub } from '../hub-connection.ts';
import { durationParser, formatDuration } from '../terminal/duration.ts';
import { print, printable, printJson, printStderr } from '../terminal/output.ts';

/** How long registration is open, and an invite is good, if nobody says: seconds. */
const DEFAULT_OPEN_SECONDS = 600;
const DEFAULT_TTL_SECONDS = 3600;

/** `latchkey registration …` */
export function registrationCommand(): Command {
  return new Command('registration')
    .description('let appliances register themselves, for as long as you want')
    .addCommand(openCommand())
    .addCommand(closeCommand());
}

function openCommand(): Command {
  return new Command('open')
    .description('let any appliance introduce itself for a while; each waits until it is approved')
    .addOption(
      new Option('--for <duration>', 'how long: 90s, 2h, up to 24h')
        .argParser(durationParser('1s', '24h'))
        .default(DEFAULT_OPEN_SECONDS, '10m'),
    )
    .option('--json', 'print JSON')
    .action(async (options: { for: number; json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const opened = await hub.openRegistration(options.for);
      if (options.json === true) printJson({ open_for: opened.open_for });
      else print(registrationText(opened));
    });
}

function closeCommand(): Command {
  return new Command('close')
    .description('let no appliance introduce itself any more; an invite still works')
    .option('--json', 'print JSON')
    .action(async (options: { json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const { open_for } = await hub.openRegistration(0);
      if (options.json === true) printJson({ open_for });
      else printStderr('Registration is closed.');
    });
}

function registrationText({ open_for, registration_endpoint, ca_fingerprint }: OpenRegistrationResponse): string {
  return `Registration is open for ${formatDuration(open_for)}. Give an appliance, where it asks:

  registration_endpoint  ${registration_endpoint}
  ca_fingerprint         ${ca_fingerprint}

Who has come: latchkey appliance list`;
}

interface InviteOptions {
  readonly for?: string;
  readonly scope?: string;
  readonly portal?: string;
  readonly ttl: number;
  readonly json?: boolean;
}

/** `latchkey invite` */
export function inviteCommand(): Command {
  return new Command('invite')
    .description('make an initial access token, with which one appliance may register itself once; shown this once')
    .option('--for <name>', 'what the appliance is to be called (default: what it calls itself)')
    .option('--scope <scope>', 'the scope that its grant is asked for, as "A B" (default: what it asks for)')
    .option('--portal <name>', 'the portal that grants it (default: the first one of the configuration)')
    .addOption(
      new Option('--ttl <duration>', 'how long it is good: 10m, 2h, up to 30d')
        .argParser(durationParser('1s', '30d'))
        .default(DEFAULT_TTL_SECONDS, '1h'),
    )
    .option('--json', 'print JSON')
    .action(async (options: InviteOptions, command: Command) => {
      await using hub = await connectHub(command);
      const { for: name = null, scope = null, portal = null } = options;
      const invite = await hub.invite({ name, scope, portal, ttl: options.ttl });
      if (options.json === true) printJson(invite);
      else await showInvite(invite);
    });
}

/** The token as a QR code too where a person sees it: an appliance with a camera, or its app, takes it from there. */
async function showInvite(invite: InviteResponse): Promise<void> {
  print(inviteText(invite));
  if (!process.stdout.isTTY) return;
  const { renderQrCode: qrCode } = await import('../terminal/qr-code.ts');
  const code = qrCode(invite.token, process.stdout);
  if (code !== null) print(`\nThe token as a QR code:\n\n${code}`);
}

function inviteText({ token, name, scope, expires_in, registration_endpoint, ca_fingerprint }: InviteResponse): string {
  const whose = name === null ? 'One appliance' : printable(name);
  const fixed =
    scope === null ? '' : `\n  scope                  ${printable(scope)}   (whatever the appliance asks for)`;
  return `${whose} may register within ${formatDuration(expires_in)}, and needs no approval then.

  token                  ${token}   (shown this once)
  registration_endpoint  ${registration_endpoint}
  ca_fingerprint         ${ca_fingerprint}${fixed}

An appliance that registers by RFC 7591 takes the token as its initial access token. By hand:

  latchkey ca > latchkey-ca.pem
  curl --cacert latchkey-ca.pem --config - --header 'Content-Type: application/json' \\
    --data '{"client_name":"${name ?? 'My appliance'}"}' \\
    '${registration_endpoint}' <<'EOF'
header = "Authorization: Bearer ${token}"
EOF`;
}
