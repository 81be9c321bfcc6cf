/**
 * JSON as the portal writes it: `/` as `\/` and `&` as `\u0026` (specification, "OAuth2 helper configuration").
 * Outside of strings JSON has neither character.
 */
export function portalJson(value: unknown): string {
  const json = JSON.stringify(value);
  return /[/&]/.test(json) ? json.replaceAll('/', '\\/').replaceAll('&', '\\u0026') : json;
}
