/** Headers as a person writes them, one `Name: value` a line; null where a line is none, or a name comes twice. */
export function headersOf(text: string): Readonly<Record<string, string>> | null {
  const headers = new Map<string, string>();
  for (const line of text.split('\n').map((one) => one.trim())) {
    if (line === '') continue;
    const colon = line.indexOf(':');
    const name = line.slice(0, Math.max(0, colon)).trim();
    if (name === '' || headers.has(name.toLowerCase())) return null;
    headers.set(name.toLowerCase(), line.slice(colon + 1).trim());
  }
  return Object.fromEntries(headers);
}
