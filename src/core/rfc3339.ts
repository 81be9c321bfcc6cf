/** An instant as RFC 3339 has it, in UTC and whole seconds, such as `2026-11-22T07:14:05Z`. @param wall ms since 1970 */
export function rfc3339(wall: number): string {
  return new Date(wall).toISOString().replace(/\.\d+Z$/, 'Z');
}
