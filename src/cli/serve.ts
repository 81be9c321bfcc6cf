import { Command } from 'commander';
import { fail } from './output.ts';

/** `latchkey serve` */
export function serveCommand(): Command {
  return new Command('serve').description('not built yet').action(() => fail('serve is not in this version yet'));
}
