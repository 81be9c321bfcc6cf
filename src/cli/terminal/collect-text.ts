/** Collects the values of an option that may be repeated. */
export function collectText(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}
