/** A letter takes so many dots, with the gap after it, and the line below it. */
export const LETTER = { width: 6, height: 9 } as const;

/**
 * Printable ASCII from the space on, eight letters a line: of each seven rows from the top, a digit to the base of 32 for
 * the five dots of a row.
 */
const ROWS = [
  '0000000 4444404 aaa0000 aavavaa 4fke5u4 op248j3 cik8lid 4480000',
  '2488842 8422248 04lel40 044v440 0000448 000v000 00000cc 11248gg',
  'ehjlphe 4c4444e eh168gv u11e11u 26aiv22 vgu11he 68guhhe v124888',
  'ehhehhe ehhf12c 0cc0cc0 0cc0c48 248g842 00v0v00 8421248 eh16404',
  'ehnlnge ehhvhhh uhhuhhu ehggghe uhhhhhu vgguggv vgguggg ehgnhhf',
  'hhhvhhh e44444e 72222ic hikokih ggggggv hrllhhh hpljhhh ehhhhhe',
  'uhhuggg ehhhlid uhhukih fgge11u v444444 hhhhhhe hhhhha4 hhhllrh',
  'hha4ahh hha4444 v1248gv e88888e gg84211 e22222e 4ah0000 000000v',
  '8400000 00e1fhf gguhhhu 00eggge 11fhhhf 00ehvge 68s8888 0fhhf1e',
  'gguhhhh 40c444e 20622ic ggikoki c44444e 00qllll 00uhhhh 00ehhhe',
  '0uhhugg 0fhhf11 00moggg 00fge1u 88s8886 00hhhhf 00hhha4 00hhlla',
  '00ha4ah 0hhhf1e 00v248v 6448446 4444444 c44244c 008l200',
]
  .join(' ')
  .split(' ');

const FIRST = 32;
const UNKNOWN = '?';
/** They reach a row below the line that the others stand on. */
const DESCENDING = 'gpqy,;';

/**
 * The dots of a letter, by row from the top and by column from the left. Accents are left out; what is no letter of ASCII
 * then comes as a question mark.
 */
export function letterDots(letter: string): boolean[][] {
  const plain = letter.normalize('NFKD').charAt(0);
  const rows = ROWS[plain.charCodeAt(0) - FIRST] ?? ROWS[UNKNOWN.charCodeAt(0) - FIRST] ?? '';
  return [...(DESCENDING.includes(plain) ? '0' : ''), ...rows].map((row) =>
    [16, 8, 4, 2, 1].map((bit) => (Number.parseInt(row, 32) & bit) !== 0),
  );
}
