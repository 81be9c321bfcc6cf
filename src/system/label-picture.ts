import { crc32 } from 'node:zlib';
import { encode as encodePng } from 'fast-png';
import { encode as encodeQr } from 'uqr';
import { LETTER, letterDots } from './bitmap-font.ts';

/** What a label shows. */
export interface LabelContent {
  /** The appliance's name. */
  readonly name: string;
  readonly hubName: string;
  /** What the label is for, in a few words. */
  readonly caption: string;
  /** What the QR code holds, and is written beside it: the hub's own address, which any QR code has room for. */
  readonly link: string;
  /** A second link, in small print. */
  readonly otherLink: string | null;
}

/** 60 by 40 mm at 300 dots per inch. */
const WIDTH = 709;
const HEIGHT = 472;
/** 300 dpi as PNG has it. */
const DOTS_PER_METRE = 11_811;
const MARGIN = 24;
/** The line in which the QR code, and what stands beside it, begins. */
const BODY = 112;

/** Dark dots on white. */
class Sheet {
  readonly dots = new Uint8Array(WIDTH * HEIGHT).fill(255);

  fill(left: number, top: number, width: number, height: number): void {
    for (let y = Math.max(0, top); y < Math.min(HEIGHT, top + height); y++) {
      this.dots.fill(0, y * WIDTH + Math.max(0, left), y * WIDTH + Math.min(WIDTH, left + width));
    }
  }

  /** @param size of a letter's dots. @returns where the next line begins */
  write(text: string, left: number, top: number, size: number): number {
    [...text].forEach((letter, index) => {
      letterDots(letter).forEach((row, y) => {
        row.forEach((dark, x) => {
          if (dark) this.fill(left + (index * LETTER.width + x) * size, top + y * size, size, size);
        });
      });
    });
    return top + LETTER.height * size;
  }
}

/**
 * A label for the door of a cabinet, as PNG: black on white, 60 by 40 mm at 300 dpi. Letters beyond ASCII come without their
 * accents.
 */
export function labelPicture({ name, hubName, caption, link, otherLink }: LabelContent): Uint8Array {
  const sheet = new Sheet();
  const whole = WIDTH - 2 * MARGIN;
  const nameSize = [6, 5, 4].find((size) => fits(name, size, whole)) ?? 3;
  let top = MARGIN;
  for (const line of lines(name, nameSize, whole).slice(0, 2)) top = sheet.write(line, MARGIN, top, nameSize);
  sheet.write(cut(hubName, 3, whole), MARGIN, top, 3);

  const { data, size } = encodeQr(link, { ecc: 'M', border: 4 });
  const module = Math.floor((HEIGHT - BODY) / size);
  data.forEach((row, y) => {
    row.forEach((dark, x) => {
      if (dark) sheet.fill(x * module, BODY + y * module, module, module);
    });
  });

  const left = size * module;
  const room = WIDTH - MARGIN - left;
  top = BODY + 4 * module;
  for (const line of lines(caption, 3, room)) top = sheet.write(line, left, top, 3);
  top += 18;
  for (const line of lines(link, 3, room)) top = sheet.write(line, left, top, 3);
  top += 18;
  for (const line of otherLink === null ? [] : lines(otherLink, 2, room)) top = sheet.write(line, left, top, 2);
  return withResolution(encodePng({ width: WIDTH, height: HEIGHT, data: sheet.dots, depth: 8, channels: 1 }));
}

function fits(text: string, size: number, room: number): boolean {
  return [...text].length * LETTER.width * size <= room;
}

function cut(text: string, size: number, room: number): string {
  const most = Math.floor(room / (LETTER.width * size));
  return fits(text, size, room) ? text : `${[...text].slice(0, most - 3).join('')}...`;
}

/** Breaks a text between words, and where one is too long for a line, in the middle. */
function lines(text: string, size: number, room: number): string[] {
  const most = Math.floor(room / (LETTER.width * size));
  const found: string[] = [];
  let line = '';
  for (const word of text.split(' ').flatMap((each) => each.match(new RegExp(`.{1,${most}}`, 'gu')) ?? [])) {
    if (line !== '' && line.length + 1 + word.length > most) {
      found.push(line);
      line = '';
    }
    line = line === '' ? word : `${line} ${word}`;
  }
  return line === '' ? found : [...found, line];
}

/** Says how large the picture is to be printed (PNG, 11.3.5.3): printers go by it. */
function withResolution(png: Uint8Array): Uint8Array {
  const afterHeader = 33;
  const chunk = Buffer.alloc(21);
  chunk.writeUInt32BE(9, 0);
  chunk.write('pHYs', 4, 'latin1');
  chunk.writeUInt32BE(DOTS_PER_METRE, 8);
  chunk.writeUInt32BE(DOTS_PER_METRE, 12);
  chunk.writeUInt8(1, 16);
  chunk.writeUInt32BE(crc32(chunk.subarray(4, 17)), 17);
  return Buffer.concat([png.subarray(0, afterHeader), chunk, png.subarray(afterHeader)]);
}
