/** The first one that fits counts: browsers name those that they want to be taken for, too. */
const BROWSERS: readonly (readonly [name: string, mark: RegExp])[] = [
  ['Edge', /\bEdg(?:e|A|iOS)?\//],
  ['Opera', /\bOPR\//],
  ['Samsung Internet', /\bSamsungBrowser\//],
  ['Firefox', /\b(?:Firefox|FxiOS)\//],
  ['Chrome', /(?:Chrome|CriOS)\//],
  ['Safari', /\bSafari\//],
];
const SYSTEMS: readonly (readonly [name: string, mark: RegExp])[] = [
  ['iPhone', /\biPhone\b/],
  ['iPad', /\biPad\b/],
  ['Android', /\bAndroid\b/],
  ['Windows', /\bWindows\b/],
  ['macOS', /\bMacintosh\b/],
  ['ChromeOS', /\bCrOS\b/],
  ['Linux', /\bLinux\b/],
];

/**
 * Roughly which browser it is, such as "Firefox, Android"; null where nobody can tell. Of what the browser says nothing else is in it.
 * @param userAgent as the browser sends it (RFC 9110, 10.1.5)
 */
export function browserName(userAgent: string | undefined): string | null {
  const nameIn = (names: typeof BROWSERS) => names.find(([, mark]) => mark.test(userAgent ?? ''))?.[0] ?? [];
  return [nameIn(BROWSERS), nameIn(SYSTEMS)].flat().join(', ') || null;
}
