import { Command } from 'commander';
import type { StoreKeyAnswer } from '../control/messages.ts';
import { connectHub } from './hub-connection.ts';
import { print, printable, printJson } from './terminal/output.ts';

interface Options {
  readonly json?: boolean;
}

/** `latchkey store-key` */
export function storeKeyCommand(): Command {
  return new Command('store-key')
    .description("replace the key that the hub's store is sealed with")
    .requiredOption('--rotate', 'make another key and seal everything anew; the hub goes on meanwhile')
    .option('--json', 'print JSON')
    .action(async (options: Options, command: Command) => {
      await using hub = await connectHub(command);
      const rotation = await hub.rotateStoreKey();
      if (options.json === true) printJson(rotation);
      else print(said(rotation));
    });
}

function said({ leftovers, copy_problem, is_credential }: StoreKeyAnswer): string {
  const parts = ['The store has another key, and everything in it is sealed anew: the key before opens nothing of it.'];
  if (is_credential) {
    parts.push(`Now put the new credential in the place of the one before, where it lies:
  sudo mv /etc/latchkey/credentials/store.key.next /etc/latchkey/credentials/store.key`);
  }
  if (copy_problem !== null) {
    parts.push(`There is no daily copy until the next one can be made: ${printable(copy_problem)}`);
  }
  if (leftovers.length > 0) {
    parts.push(`The key before still opens these; delete them when nothing in them is missed:
${leftovers.map((path) => `  ${printable(path)}`).join('\n')}`);
  }
  return parts.join('\n\n');
}
