import { writeFile } from 'node:fs/promises';
import type { ControlClient } from '../../control/client.ts';
import { messageOf } from '../../core/failure.ts';
import { type LabelContent, labelSvg } from '../../system/label.ts';
import { print, printable, printJson, printStderr, reportFailure } from '../terminal/output.ts';
import { renderQrCode, renderQrCodeForPaper } from '../terminal/qr-code.ts';
import { type LanguageOption, labelTexts } from './label-language.ts';

/** Options of `latchkey pair NAME --print`. */
export interface LabelOptions extends LanguageOption {
  readonly output?: string;
  /** The QR code contains the hub's address instead of its name. */
  readonly byAddress?: boolean;
  /** Overwrite an existing file. */
  readonly yes?: boolean;
  readonly json?: boolean;
}

/** `latchkey pair NAME --print`: the label as text, and as an SVG file. */
export async function printLabel(hub: ControlClient, typed: string, options: LabelOptions): Promise<void> {
  const label = await hub.request('label', { name: typed });
  const { name, title, hub_name: hubName, by_address: byAddress } = label;
  if (options.byAddress === true && byAddress === null) {
    return reportFailure(
      'the hub has no address in the home network yet: connect it to the network, or omit --by-address',
    );
  }
  const isByAddress = options.byAddress === true && byAddress !== null;
  const [link, otherLink] = isByAddress ? [byAddress, label.link] : [label.link, byAddress];
  const file = options.output ?? `latchkey-${name}.svg`;
  const content = { title, hubName, caption: labelTexts(options).connect, link, otherLink };
  await outputLabel(content, file, options, { name, link, other_link: otherLink, file });
}

/**
 * Writes a label to an SVG file, and prints it as text.
 * @param json what to print in place of the text with `--json`
 * @param mode of the file, if it is new
 */
export async function outputLabel(
  content: LabelContent,
  file: string,
  options: Pick<LabelOptions, 'language' | 'yes' | 'json'>,
  json: object,
  mode?: number,
): Promise<void> {
  const { title, hubName, caption, link, otherLink } = content;
  try {
    await writeFile(file, labelSvg(content), { flag: options.yes === true ? 'w' : 'wx', mode });
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') {
      return reportFailure(`${file} already exists: overwrite it with --yes, or choose another name with --output`);
    }
    return reportFailure(
      `the label can't be written to ${file} (${messageOf(error)}): choose another file with --output`,
    );
  }
  if (options.json === true) {
    printJson(json);
    return;
  }
  const code = process.stdout.isTTY ? renderQrCode(link, process.stdout) : renderQrCodeForPaper(link);
  print(`${printable(title)}\n${printable(hubName)}\n`);
  if (code !== null) print(`${code}\n`);
  const { open, or } = labelTexts(options);
  print(`${caption}${open}\n  ${link}${otherLink === null ? '' : `\n${or}\n  ${otherLink}`}`);
  printStderr(`the label is in ${file}: print it at 60 by 40 mm`);
}
