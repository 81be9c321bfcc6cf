import { Command } from 'commander';
import { fail } from './output.ts';

/** `latchkey demo` */
export function demoCommand(): Command {
  return new Command('demo').description('not built yet').action(() => fail('demo is not in this version yet'));
}
