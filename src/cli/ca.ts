import { Command } from 'commander';
import { connectHub } from './hub-connection.ts';
import { print, printJson } from './output.ts';

interface Options {
  readonly fingerprint?: boolean;
  readonly json?: boolean;
}

/** `latchkey ca` */
export function caCommand(): Command {
  return new Command('ca')
    .description("print the hub's CA certificate (PEM)")
    .option('--fingerprint', 'print its pin instead: the base64url SHA-256 of its public key')
    .option('--json', 'print both as JSON')
    .action(async (options: Options, command: Command) => {
      await using hub = await connectHub(command);
      const { certificate, fingerprint } = await hub.authority();
      if (options.json === true) printJson({ certificate, fingerprint });
      else print(options.fingerprint === true ? fingerprint : certificate.trimEnd());
    });
}
