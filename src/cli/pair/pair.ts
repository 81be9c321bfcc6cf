import { Command } from 'commander';
import { connectHub } from '../hub-connection.ts';
import { parseDuration } from '../terminal/duration.ts';
import { type PairOptions, pairOne } from './one.ts';

interface Options extends PairOptions {
  readonly all?: boolean;
  readonly print?: boolean;
  readonly output?: string;
  readonly byAddress?: boolean;
  readonly yes?: boolean;
}

/** `latchkey pair NAME`, and `latchkey pair --all` */
export function pairCommand(): Command {
  return new Command('pair')
    .description('pair an appliance: shows the link to log in at, and waits until somebody has')
    .argument('[name]', "the appliance's name")
    .option('--all', 'pair all appliances that need it, one after the other')
    .option('--no-wait', 'end when the link is there')
    .option(
      '--timeout <duration>',
      'stop waiting after so many seconds, or 45s, 10m; the pairing goes on',
      parseDuration,
    )
    .option('--print', "print a label for the appliance's cabinet; its link starts a fresh pairing each time")
    .option('--output <file>', 'with --print: where the picture goes (default: latchkey-NAME.png)')
    .option('--by-address', "with --print: the QR code holds the hub's address of today, not its name")
    .option('--yes', 'with --print: write over a file that is there')
    .option('--json', 'print JSON, one object a line')
    .action(pair);
}

async function pair(name: string | undefined, options: Options, command: Command): Promise<void> {
  const { all, print, output, byAddress, yes } = options;
  if (all === true && name !== undefined) command.error('error: give a name or --all, not both');
  if (all === true && print === true) command.error('error: --print is for one appliance: give its name');
  if (all !== true && name === undefined) command.error('error: give the name of an appliance, or --all');
  const ofLabels = [output !== undefined && '--output', byAddress && '--by-address', yes && '--yes'].find(Boolean);
  if (ofLabels && print !== true) command.error(`error: ${ofLabels} goes with --print`);
  await using hub = await connectHub(command);
  if (name === undefined) {
    const { pairAll } = await import('./all.ts');
    return await pairAll(hub, options);
  }
  if (print !== true) return await pairOne(hub, name, options);
  const { printLabel } = await import('./label.ts');
  return await printLabel(hub, name, options);
}
