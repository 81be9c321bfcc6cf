import { Command } from 'commander';
import type { SetupCodeAnswer } from '../control/messages.ts';
import { connectHub } from './hub-connection.ts';
import { formatDuration } from './terminal/duration.ts';
import { notice, print, printable, printJson } from './terminal/output.ts';

interface Options {
  readonly rotate?: boolean;
  readonly json?: boolean;
}

/** `latchkey setup-code` */
export function setupCodeCommand(): Command {
  return new Command('setup-code')
    .description("print the setup code of the hub's page; on a terminal also a QR code that signs a phone in once")
    .option('--rotate', 'make another code first; whoever is signed in to the page is signed out')
    .option('--json', 'print JSON')
    .action(async (options: Options, command: Command) => {
      await using hub = await connectHub(command);
      const answer = await (options.rotate === true ? hub.rotateSetupCode() : hub.setupCode());
      if (options.rotate === true) {
        notice('the setup code is another one now, and whoever was signed in to the page is signed out');
      }
      if (options.json === true) printJson(answer);
      else if (process.stdout.isTTY) await show(answer);
      else print(answer.code);
    });
}

/** What a person types comes last: it is seen where the whole is higher than the terminal, too. */
async function show({ code, page, sign_in, expires_in }: SetupCodeAnswer): Promise<void> {
  print(`To sign in on a phone, scan this. It is good once, for ${formatDuration(expires_in)}.
The browser warns of the hub's certificate once: it is the hub's own.`);
  const { noRoomFor, qrCode } = await import('./terminal/qr-code.ts');
  const drawn = qrCode(sign_in, process.stdout);
  if (drawn === null) notice(`${noRoomFor(sign_in, process.stdout)}\n`);
  else print(drawn);
  print(`  ${printable(sign_in)}

Setup code   ${code}
Page         ${printable(page)}`);
}
