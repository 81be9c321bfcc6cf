import { writeFile } from 'node:fs/promises';
import type { ControlClient } from '../../control/client.ts';
import { messageOf } from '../../core/failure.ts';
import { labelSvg } from '../../system/label.ts';
import { fail, notice, print, printable, printJson } from '../terminal/output.ts';
import { printedQrCode, qrCode } from '../terminal/qr-code.ts';

/** Which label is printed, and where to. */
export interface LabelOptions {
  readonly output?: string;
  /** The QR code holds the address in place of the name. */
  readonly byAddress?: boolean;
  /** A file that is there may be written over. */
  readonly yes?: boolean;
  readonly json?: boolean;
}

/** `latchkey pair NAME --print`: the label as text, and as an SVG file. */
export async function printLabel(hub: ControlClient, name: string, options: LabelOptions): Promise<void> {
  const label = await hub.label(name);
  const { hub_name: hubName, by_address: byAddress } = label;
  if (options.byAddress === true && byAddress === null) {
    return fail('the hub has no address in the home network yet: connect it, or leave --by-address out');
  }
  const isByAddress = options.byAddress === true && byAddress !== null;
  const [link, otherLink] = isByAddress ? [byAddress, label.link] : [label.link, byAddress];
  const file = options.output ?? `latchkey-${name}.svg`;
  const picture = labelSvg({ name, hubName, caption: 'Scan to connect', link, otherLink });
  try {
    await writeFile(file, picture, { flag: options.yes === true ? 'w' : 'wx' });
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') {
      return fail(`${file} is there already: give --yes to write over it, or another name with --output`);
    }
    return fail(`the label can't be written to ${file} (${messageOf(error)}): name another place with --output`);
  }
  if (options.json === true) {
    printJson({ name, link, other_link: otherLink, file });
    return;
  }
  const code = process.stdout.isTTY ? qrCode(link, process.stdout) : printedQrCode(link);
  print(`${name}\n${printable(hubName)}\n`);
  if (code !== null) print(`${code}\n`);
  print(`Scan to connect, or open\n  ${link}${otherLink === null ? '' : `\nor\n  ${otherLink}`}`);
  notice(`the label to be printed is in ${file}: 60 by 40 mm`);
}
