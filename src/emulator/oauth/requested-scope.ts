import type { Settings } from '../settings/settings.ts';
import { isScope } from './authorization-request.ts';

/** A scope with one space between its names, null if none was requested, or why it is refused. */
export type ScopeResult = { readonly scope: string | null } | { readonly refused: string };

/** Reads the scope of an authorization request or of a device authorization request. */
export function readRequestedScope(sent: string | undefined, settings: Settings): ScopeResult {
  const hasCommas = settings.scopeSeparator === 'comma';
  const scope = (hasCommas ? sent?.replaceAll(/, */g, ' ') : sent) ?? null;
  // Without its commas, a space is no separator there.
  const hasWrongSeparator = hasCommas && sent?.replaceAll(/, */g, ',').includes(' ') === true;
  if (scope !== null && (hasWrongSeparator || !isScope(scope)))
    return { refused: 'scope must be names with one separator between them' };
  const names = scope?.split(' ') ?? [];
  const known = settings.scopes?.split(' ') ?? names;
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) return { refused: `scope ${unknown} does not exist` };
  const missing = settings.requiredScopes?.split(' ').find((name) => !names.includes(name));
  return missing === undefined ? { scope } : { refused: `scope ${missing} is missing` };
}

/** Whether a login may get a refresh token if not every one does. */
export function requestsOfflineAccess(scope: string | null, parameters: ReadonlyMap<string, string>): boolean {
  return scope?.split(' ').includes('offline_access') === true || parameters.get('access_type') === 'offline';
}
